package sparkdstl.sim.world

import scala.collection.mutable

/** What went wrong first, and what happened before. A future would swallow an exception: so violations are kept here. */
final class Verdict(now: () => Long, keepLines: Boolean) {
  private val KeptLines = 4000
  private val lines = mutable.Queue.empty[String]
  private var first: Option[String] = None
  private var hash = 1125899906842597L

  def violation: Option[String] = first

  /** Says that something holds no more that must hold always. Only the first counts. */
  def violate(what: => String): Unit = if (first.isEmpty) {
    first = Some(what)
    note(s"VIOLATION: ${first.get}")
  }

  /** A line of the schedule; made only where somebody will read it. */
  def note(line: => String): Unit = if (keepLines) {
    if (lines.size == KeptLines) lines.dequeue(): Unit
    lines += f"${now() / 1e6}%12.3f  $line": Unit
  }

  /** Mixes what happened into the hash that two runs of one seed must agree on. */
  def mix(value: Long): Unit = hash = (hash ^ value) * 1099511628211L + (hash >>> 29)

  def traceHash: Long = hash
  def schedule: Vector[String] = lines.toVector
}
