package sparkdstl.sim

import sparkdstl.sim.wiring.{Flaws, Simulated}

/** For trying things out, seed by seed. */
object ToyMain {
  def main(arguments: Array[String]): Unit = {
    val wiring = if (arguments(0) == "toy") ToyLog() else Simulated(Flaws.None)
    val seeds = new Seeds(wiring)
    (arguments(1).toLong to arguments(2).toLong).foreach { seed =>
      val start = System.nanoTime()
      val r = seeds.run(seed)
      println(s"$seed ${r.steps} steps ${(System.nanoTime() - start) / 1000000} ms, ${r.committed} ${r.decidable} ${r.violation.getOrElse("")}")
      if (arguments.length > 3 && r.violation.nonEmpty) println(seeds.report(r, arguments(3).toInt))
    }
  }
}
