package sparkdstl.sim.world

import scala.collection.mutable

/** How often a world, or many of them, came to each fault and each branch of the protocol that is named. Not thread-safe. */
final class Reach {
  private val counts = mutable.HashMap.empty[String, Long]

  def met(probe: String): Unit = {
    if (!Reach.names(probe)) throw new IllegalArgumentException(s"no probe is called $probe")
    counts(probe) = counts.getOrElse(probe, 0L) + 1
  }

  def met(kind: FaultKind): Unit = met(kind.toString)

  /** A line that the protocol has logged. */
  def logged(line: String): Unit = Branches.ofLines.foreach { case (part, name) => if (line.contains(part)) met(name) }

  /** By probe, how often it was met. */
  def toMap: Map[String, Long] = counts.toMap
}

/** In how many worlds a probe fired, and the lowest seed of one. */
final case class Reached(worlds: Long, first: Long) {
  def +(other: Reached): Reached = Reached(worlds + other.worlds, math.min(first, other.first))
}

object Reach {
  private val names: Set[String] = (FaultKind.all.map(_.toString) ++ Branches.all.map(_._1)).toSet

  /** All probes, in how many worlds each fired, and in which seed first, as a table. */
  def table(reached: Map[String, Reached]): String = {
    val faults = FaultKind.all.map(kind => kind.toString -> "fault")
    val rows = (faults ++ Branches.all).map { case (name, what) =>
      val of = reached.get(name)
      val (worlds, first) = (of.fold("0")(_.worlds.toString), of.fold("-")(_.first.toString))
      f"| $name%-51s | $worlds%7s | $first%7s | $what |"
    }
    (Vector(f"| ${"probe"}%-51s |  worlds |    seed | what it shows |", "|---|---|---|---|") ++ rows).mkString("\n")
  }

  /** Probes that fired in none of many worlds. */
  def missed(reached: Map[String, Reached]): Vector[String] = names.filterNot(reached.contains).toVector.sorted

  /** The same of fewer worlds: rare ones need not fire. */
  def missedOften(reached: Map[String, Reached]): Vector[String] = missed(reached).filterNot(Branches.rare)
}
