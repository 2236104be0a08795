// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.scalatest.funsuite.AnyFunSuite

class TransferSuite extends AnyFunSuite {

  /** A clock that waiting advances. */
  private final class Waiting {
    var now = 0L
    var waits = 0

    def transfer(lines: Line*): Transfer = new Transfer(
      lines,
      _ => (),
      () => now,
      until => {
        waits += 1
        now = math.max(now, until)
      }
    )
  }

  test("a transfer through several lines takes the time of the slowest") {
    val waiting = new Waiting
    waiting.transfer(new Line(1000, 0), new Line(100, 0)).moved(100)
    assert(waiting.now == 1000000000L)
  }

  test("two transfers on the same line wait for each other") {
    val (one, other) = (new Waiting, new Waiting)
    val network = new Line(1000, 0)
    one.transfer(network).moved(100)
    other.transfer(network).moved(100)
    assert((one.now, other.now) == ((100000000L, 200000000L)))
  }

  test("small reads are delayed together, and the rest at the end") {
    val waiting = new Waiting
    // A microsecond a byte.
    val transfer = waiting.transfer(new Line(1000000, 0))
    (1 to 1500).foreach(_ => transfer.moved(1))
    assert((waiting.waits, waiting.now) == ((1, 1000000L)))
    transfer.end()
    assert((waiting.waits, waiting.now) == ((2, 1500000L)))
  }
}
