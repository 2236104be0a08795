// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.sim.world.Reach

class ProtocolSimulationSuite extends AnyFunSuite {
  private val Count = 200L

  test(s"$Count worlds keep the invariants and reach each probe that is not rare") {
    val tally = Seeds.runMany(1, Count, 2, 3)((_, _) => ())
    tally.failures.headOption.foreach(failure => fail(Seeds.report(failure, 80)))
    assert(Reach.missedOften(tally.reached).isEmpty)
    // Worlds without a verdict must stay the exception.
    assert(tally.undecidable < Count / 10)
  }
}
