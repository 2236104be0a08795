package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.sim.world.SimConfig

class WorldSuite extends AnyFunSuite {
  test("the same seed gives the same run") {
    (1L to 12L).foreach { seed =>
      val runs = Vector(false, true).map(Seeds.run(SimConfig.draw(seed), _))
      assert(runs.map(r => (r.traceHash, r.steps)).distinct.size == 1, s"seed $seed")
    }
  }

  test("another seed gives another run") {
    val hashes = (1L to 10L).map(Seeds.run(_).traceHash)
    assert(hashes.distinct.size == 10)
  }
}
