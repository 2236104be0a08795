package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.sim.wiring.{Flaws, Simulated}

/** A simulation that finds none of the flaws that are known would prove nothing. */
class FlawsPutBackSuite extends AnyFunSuite {
  private val Count = 3000
  private val CountOfHarmless = 100

  Flaws.harmless.foreach { flaw =>
    test(s"nothing rests on what the flaw ${Flaws.nameOf(flaw)} takes away") {
      val found = new Seeds(Simulated(flaw)).firstFailure(1, CountOfHarmless)
      assert(found.isEmpty)
    }
  }

  Flaws.all.foreach { flaw =>
    test(s"seeds find the flaw ${Flaws.nameOf(flaw)}") {
      val found = new Seeds(Simulated(flaw)).firstFailure(1, Count)
      assert(found.nonEmpty, s"in $Count seeds")
      info(s"seed ${found.get.config.seed}: ${found.get.violation.get}")
    }
  }
}
