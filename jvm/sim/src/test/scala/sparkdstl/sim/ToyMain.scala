package sparkdstl.sim

import sparkdstl.sim.wiring.{Flaws, Simulated}
import sparkdstl.sim.world.SimConfig

/** For trying things out, seed by seed: which log, first and last seed, lines of the schedule, and `small` to shrink. */
object ToyMain {
  def main(arguments: Array[String]): Unit = {
    val wiring = if (arguments(0) == "toy") ToyLog() else Simulated(Flaws.None)
    val seeds = new Seeds(wiring)
    val lines = arguments.lift(3).fold(0)(_.toInt)
    (arguments(1).toLong to arguments(2).toLong).foreach { seed =>
      val start = System.nanoTime()
      val r = seeds.run(seed)
      val millis = (System.nanoTime() - start) / 1000000
      println(s"$seed ${r.steps} steps $millis ms, ${r.committed} ${r.decidable} ${r.violation.getOrElse("")}")
      if (lines > 0 && r.violation.nonEmpty)
        println(
          if (arguments.contains("small")) seeds.report(r, lines)
          else s"${r.config}\n" +
            seeds.run(SimConfig.draw(seed), keepSchedule = true).schedule.takeRight(lines).mkString("\n")
        )
    }
  }
}
