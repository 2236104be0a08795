// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import scala.collection.mutable

import sparkdstl.sim.machines.{SimProcess, StorageChange, StoredBytes}
import sparkdstl.sim.world.{SimConfig, Verdict}

/**
 * Checks that no driver deletes unnamed data files of another application where storage does not create exclusively: another
 * driver may commit concurrently, and its next entry may name such files.
 */
private[model] final class LeftoverOracle(config: SimConfig, reader: StorageReader, verdict: Verdict) {
  private val everNamed = mutable.Set.empty[String]

  def changed(change: StorageChange): Unit = if (!config.storage.createsExclusively) {
    for (entry <- change.after; batch <- Names.batchOf(change.path) if Names.isEntry(change.path))
      everNamed ++= reader.namedBy(batch, entry)
    for (file <- change.before if change.after.isEmpty && Names.isDataFile(change.path) && !everNamed(change.path))
      if (Names.isDriver(change.writer) && isAnothers(file, change.writer))
        verdict.violate(s"${change.writer.name} deletes ${change.path} of ${file.writer.name}, which may be active")
  }

  private def isAnothers(file: StoredBytes, deletedBy: SimProcess): Boolean =
    Names.applicationOf(file.writer).exists(of => !Names.applicationOf(deletedBy).contains(of))
}
