package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.sim.wiring.Simulated
import sparkdstl.sim.world.SimConfig

class WorldSuite extends AnyFunSuite {
  private val seeds = new Seeds(Simulated.wiring)

  test("the same seed gives the same run") {
    (1L to 25L).foreach { seed =>
      val runs = Vector(false, true).map(seeds.run(SimConfig.draw(seed), _))
      assert(runs.map(r => (r.traceHash, r.steps)).distinct.size == 1, s"seed $seed")
    }
  }

  test("another seed gives another run") {
    val hashes = (1L to 20L).map(seeds.run(_).traceHash)
    assert(hashes.distinct.size == 20)
  }
}
