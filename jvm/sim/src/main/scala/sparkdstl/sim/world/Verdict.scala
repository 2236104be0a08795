// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.world

import scala.collection.mutable

/** The first violation and the schedule before it. Violations are kept here because a future would swallow an exception. */
final class Verdict(now: () => Long, keepLines: Boolean) {
  private val KeptLines = 4000
  private val lines = mutable.Queue.empty[String]
  private var first: Option[String] = None
  private var hash = 1125899906842597L

  def violation: Option[String] = first

  /** Records a violation of an invariant. Only the first counts. */
  def violate(what: => String): Unit = if (first.isEmpty) {
    first = Some(what)
    note(s"VIOLATION: ${first.get}")
  }

  /** Adds a line to the schedule; evaluated only if the schedule is kept. */
  def note(line: => String): Unit = if (keepLines) {
    if (lines.size == KeptLines) lines.dequeue(): Unit
    lines += f"${now() / 1e6}%12.3f  $line": Unit
  }

  /** Mixes a value into the trace hash, which is equal for two runs of one seed. */
  def mix(value: Long): Unit = hash = (hash ^ value) * 1099511628211L + (hash >>> 29)

  def traceHash: Long = hash
  def schedule: Vector[String] = lines.toVector
}
