// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.scalatest.funsuite.AnyFunSuite

class LineSuite extends AnyFunSuite {
  private val second = 1000000000L

  test("content takes time by its size, one piece after another") {
    val line = new Line(1000, 0)
    assert(line.carry(500, now = 0) == second / 2)
    assert(line.carry(500, now = 0) == second)
    assert(line.carry(100, now = second / 2) == second * 11 / 10)
  }

  test("an idle line catches up by no more than its buffers") {
    val line = new Line(1000, 0)
    assert(line.carry(100, now = 10 * second) == 10 * second + second / 10 - Line.BufferedNanos)
  }

  test("without a limit content takes no time") {
    assert(new Line(0, 0).carry(1L << 40, now = 7) == 7)
  }
}
