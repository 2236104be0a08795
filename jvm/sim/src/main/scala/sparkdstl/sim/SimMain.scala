// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim

import sparkdstl.sim.world.Reach

/**
 * Runs seeds, prints progress and probes, and exits with 1 if one fails. Arguments: the number of seeds, the first seed, and the
 * number of lines of a failing schedule to print; `whole` prints failing worlds without shrinking them.
 */
object SimMain {
  private val MaxFailures = 20
  private val ReportedFailures = 3
  private val DefaultLines = 120
  private val SeedsForProbes = 400L

  def main(arguments: Array[String]): Unit = {
    val count = arguments.headOption.fold(10000L)(_.toLong)
    val from = arguments.lift(1).fold(1L)(_.toLong)
    val lines = arguments.lift(2).fold(DefaultLines)(_.toInt)
    val threads = math.max(1, Runtime.getRuntime.availableProcessors)
    val began = System.nanoTime()
    def seconds = (System.nanoTime() - began) / 1000000000L
    val every = math.max(1L, math.min(5000L, count / 20))
    val tally = Seeds.runMany(from, count, threads, MaxFailures) { (finished, result) =>
      result.violation.foreach(what => println(s"seed ${result.config.seed} fails: $what"))
      if (finished % every == 0) println(s"$finished of $count seeds after $seconds s")
    }
    println(
      s"${tally.seeds} seeds from $from on, ${tally.steps} events in $seconds s, ${tally.undecidable} without a verdict, " +
        s"${tally.failures.size} failed"
    )
    if (count > 1) println(s"probes:\n${Reach.table(tally.reached)}")
    tally.failures.take(ReportedFailures).foreach(f =>
      println(Seeds.report(f, lines, shrinks = !arguments.lift(3).contains("whole")))
    )
    val missed = if (count < SeedsForProbes) Vector.empty else Reach.missedOften(tally.reached)
    if (missed.nonEmpty) println(s"probes that did not fire, and are not rare: ${missed.mkString(", ")}")
    if (tally.failures.nonEmpty || missed.nonEmpty) sys.exit(1)
  }
}
