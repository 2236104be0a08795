// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import sparkdstl.sim.machines.StorageChange
import sparkdstl.sim.world.Verdict

/**
 * Checks the order in which the files of a batch become durable: entry of the source, offsets, and then seals and commit entry. A
 * file that was deleted counts as durable, because late writes appear in any order.
 */
final class PlanOracle(verdict: Verdict) {
  private val offsets = mutable.HashSet.empty[Long]
  private val entries = mutable.HashSet.empty[Long]

  def changed(change: StorageChange): Unit = for (written <- change.after; number <- Names.batchOf(change.path))
    if (change.path.startsWith(Names.Source)) entries += number
    else if (change.path.startsWith(Names.Offsets)) {
      offsets += number
      PlanOracle.sourceEntry(written.bytes).filterNot(entries).foreach { entry =>
        verdict.violate(
          s"${change.path} of ${change.writer.name} names entry $entry of the source, which is not written"
        )
      }
    } else if (Names.isEntry(change.path) && !offsets(number))
      verdict.violate(s"${change.path} is created by ${change.writer.name} before the batch's offsets")

  /** A seal of a batch is accepted. */
  def accepted(who: String, batch: Long): Unit =
    if (!offsets(batch)) verdict.violate(s"$who accepts a seal of batch $batch before the batch's offsets are durable")
}

object PlanOracle {
  private val Planned = ".* plans .* up to entry ([0-9]+)".r

  /** The content of offsets, which distinguishes two queries that plan the same batch. */
  def content(who: String, batch: Long, entry: Option[Long]): Array[Byte] =
    s"$who plans $batch${entry.fold("")(number => s" up to entry $number")}".getBytes(UTF_8)

  private def sourceEntry(content: Array[Byte]): Option[Long] = new String(content, UTF_8) match {
    case Planned(entry) => Some(entry.toLong)
    case _ => None
  }
}
