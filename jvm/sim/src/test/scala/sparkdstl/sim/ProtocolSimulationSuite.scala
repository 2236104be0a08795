package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.sim.wiring.{Flaws, Simulated}

class ProtocolSimulationSuite extends AnyFunSuite {
  private val Count = 2000L

  test(s"$Count worlds keep the invariants") {
    val tally = Seeds.runMany(Simulated(Flaws.None), 1, Count, 2, 3)((_, _) => ())
    tally.failures.headOption.foreach { failure =>
      fail(new Seeds(Simulated(Flaws.None)).report(failure, 80))
    }
    // Worlds in which nothing can be held against the log must stay the exception.
    assert(tally.undecidable < Count / 20)
  }
}
