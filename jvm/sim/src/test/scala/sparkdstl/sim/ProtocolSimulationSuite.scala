package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.sim.wiring.Simulated

class ProtocolSimulationSuite extends AnyFunSuite {
  private val Count = 2000L

  test(s"$Count worlds keep the invariants") {
    val tally = Seeds.runMany(Simulated.wiring, 1, Count, 2, 3)((_, _) => ())
    tally.failures.headOption.foreach { failure =>
      fail(new Seeds(Simulated.wiring).report(failure, 80))
    }
    // Worlds in which nothing can be held against the log must stay the exception.
    assert(tally.undecidable < Count / 20)
  }
}
