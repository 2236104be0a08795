package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.sim.spark.LogWiring
import sparkdstl.sim.wiring.{Flaws, Simulated}
import sparkdstl.sim.world.{SimConfig, World}

class WorldSuite extends AnyFunSuite {
  Seq[(String, World => LogWiring)]("the toy" -> ToyLog(), "the protocol" -> Simulated(Flaws.None)).foreach {
    case (name, wiring) =>
      test(s"the same seed gives the same run of $name") {
        (1L to 25L).foreach { seed =>
          val runs = Vector(false, true).map(new Seeds(wiring).run(SimConfig.draw(seed), _))
          assert(runs.map(r => (r.traceHash, r.steps)).distinct.size == 1, s"seed $seed")
        }
      }
  }

  test("another seed gives another run") {
    val hashes = (1L to 20L).map(new Seeds(ToyLog()).run(_).traceHash)
    assert(hashes.distinct.size == 20)
  }
}
