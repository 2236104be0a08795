// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import sparkdstl.sim.machines.{StorageChange, StoredBytes}
import sparkdstl.sim.world.{Reach, SimConfig, Verdict}

/** Checks that each epoch has one run, which claims it and whose data files are in a directory named after both. */
private[model] final class EpochOracle(config: SimConfig, verdict: Verdict, reach: Reach) {
  private val claimants = mutable.Set.empty[String]
  private val directories = mutable.Map.empty[String, String]

  def changed(change: StorageChange): Unit = {
    val path = change.path
    for (directory <- Names.runDirectory(path) if config.storage.createsExclusively) {
      val known = directories.getOrElseUpdate(directory.takeWhile(_ != '-'), directory)
      if (known != directory) verdict.violate(s"$path is in an epoch of another run: $known")
    }
    if (path.startsWith(Names.Claims) && change.before.isEmpty && change.after.exists(claimsAgain))
      reach.met("run-claims-again")
  }

  private def claimsAgain(claim: StoredBytes): Boolean = new String(claim.bytes, UTF_8).split(' ') match {
    case Array("claim", run, _*) => !claimants.add(run)
    case _ => false
  }
}
