package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.sim.world.SimConfig

class WorldSuite extends AnyFunSuite {
  test("the same seed gives the same run") {
    (1L to 40L).foreach { seed =>
      val hashes = Vector(false, true).map(new Seeds(ToyLog()).run(SimConfig.draw(seed), _)).map(r => (r.traceHash, r.steps))
      assert(hashes.distinct.size == 1, s"seed $seed")
    }
  }
}
