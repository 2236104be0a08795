// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.sim.world.SimConfig

class WorldSuite extends AnyFunSuite {
  test("equal seeds give equal runs, and different seeds give different runs") {
    val hashes = (1L to 3L).map { seed =>
      val runs = Vector(false, true).map(Seeds.run(SimConfig.draw(seed), _))
      assert(runs.map(r => (r.traceHash, r.steps)).distinct.size == 1, s"seed $seed")
      runs.head.traceHash
    }
    assert(hashes.distinct.size == hashes.size)
  }
}
