// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim

import org.scalatest.funsuite.AnyFunSuite

/** Puts back the first flaw of each list, which a few hundred seeds must detect. */
class FlawsPutBackSuite extends AnyFunSuite {
  private val Count = 300

  test("the main code has the line of each flaw") {
    assert(FlawTable.flaws.filter(_.missing.nonEmpty).map(_.name) == Nil)
  }

  FlawTable.flaws.zipWithIndex.filter(
    _._1.missing.isEmpty
  ).groupBy(_._1.list).toVector.sortBy(_._1).map(_._2.head).foreach { case (flaw, number) =>
    test(s"seeds show the flaw ${flaw.name}: ${flaw.sentence}") {
      val found = Flaw.putBack(number)(Seeds.firstFailure(1, Count))
      assert(found.nonEmpty, s"in $Count seeds")
      info(s"seed ${found.get.config.seed}: ${found.get.violation.get}")
    }
  }
}
