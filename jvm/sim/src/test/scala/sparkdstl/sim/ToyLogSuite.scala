package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

/** The world and the model, tried on a log that is small enough to be seen to be right, and then is not. */
class ToyLogSuite extends AnyFunSuite {
  private val Seeds = 60

  test("a log that keeps its promises passes") {
    val tally = sparkdstl.sim.Seeds.runMany(ToyLog(), 1, Seeds.toLong, 2, 1)((_, _) => ())
    assert(tally.failures.map(f => s"${f.config}: ${f.violation.get}") == Vector())
  }

  private val flaws = Vector(
    ToyFlaws(replacesEntries = true),
    ToyFlaws(ignoresBases = true),
    ToyFlaws(deletesWhenAsked = true),
    ToyFlaws(looksOnlyOnce = true)
  )

  flaws.foreach { flaw =>
    test(s"the model finds $flaw") {
      val found = new Seeds(ToyLog(flaw)).firstFailure(1, 3000)
      assert(found.nonEmpty)
      info(s"seed ${found.get.config.seed}: ${found.get.violation.get}")
    }
  }
}
