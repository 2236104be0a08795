// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import java.util.UUID

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.transport.RunId

class RememberedRunsSuite extends AnyFunSuite {
  private final class Run(var isAtWork: Boolean)

  private val limit = 64
  private val runs = new RememberedRuns[Run](limit, !_.isAtWork)

  private def id(number: Int) = RunId("memory:/checkpoint", new UUID(0, number.toLong))

  private def run(number: Int, isAtWork: Boolean = false): Run = runs.of(id(number))(new Run(isAtWork))

  test("active runs and the newest run are never forgotten") {
    val working = (1 to 300).map(run(_, isAtWork = true))
    assert((1 to 300).map(run(_)) == working)
    val made = run(301)
    assert(runs.get(id(301)).exists(_ eq made))
    assert(runs.all.size == 301)
  }

  test("the least recently used of the other runs is forgotten first") {
    runs.all.foreach(_.isAtWork = false)
    val first = run(1)
    run(1000): Unit
    assert(runs.all.size == limit)
    assert(runs.get(id(1)).exists(_ eq first))
    assert(runs.get(id(2)).isEmpty)
  }

  test("a run that begins to work while another one is added is asked once whether it is idle") {
    var asked = 0
    val changing = new RememberedRuns[Int](
      limit,
      _ => {
        asked += 1
        asked % 2 == 1
      }
    )
    changing.of(id(1))(1): Unit
    changing.of(id(2))(2): Unit
    assert(asked == 1)
  }

  test("a forgotten run is created again") {
    assert(runs.get(id(2)).isEmpty)
    assert(run(2) eq run(2))
  }
}
