// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.world

import scala.collection.mutable

/** Counts how often a world reaches each fault and each named branch of the protocol. Not thread-safe. */
final class Reach {
  private val counts = mutable.HashMap.empty[String, Long]

  def met(probe: String): Unit = {
    if (!Reach.names(probe)) throw new IllegalArgumentException(s"no probe is called $probe")
    counts(probe) = counts.getOrElse(probe, 0L) + 1
  }

  def met(kind: FaultKind): Unit = met(kind.toString)

  /** Counts the branch that a log line of the protocol shows. */
  def logged(line: String): Unit = Branches.ofLines.foreach { case (part, name) => if (line.contains(part)) met(name) }

  /** The count of each probe. */
  def toMap: Map[String, Long] = counts.toMap
}

/** The number of worlds in which a probe fired, and the lowest seed of them. */
final case class Reached(worlds: Long, first: Long) {
  def +(other: Reached): Reached = Reached(worlds + other.worlds, math.min(first, other.first))
}

object Reach {
  private val names: Set[String] = (FaultKind.all.map(_.toString) ++ Branches.all.map(_._1)).toSet

  /** A table of all probes with the number of worlds in which each fired and the first seed. */
  def table(reached: Map[String, Reached]): String = {
    val faults = FaultKind.all.map(kind => kind.toString -> "fault")
    val rows = (faults ++ Branches.all).map { case (name, what) =>
      val of = reached.get(name)
      val (worlds, first) = (of.fold("0")(_.worlds.toString), of.fold("-")(_.first.toString))
      f"| $name%-51s | $worlds%7s | $first%7s | $what |"
    }
    (Vector(f"| ${"probe"}%-51s |  worlds |    seed | what it shows |", "|---|---|---|---|") ++ rows).mkString("\n")
  }

  /** Probes that fired in no world. */
  def missed(reached: Map[String, Reached]): Vector[String] = names.filterNot(reached.contains).toVector.sorted

  /** Probes that fired in no world and are not rare. */
  def missedOften(reached: Map[String, Reached]): Vector[String] = missed(reached).filterNot(Branches.rare)
}
