// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.scalatest.funsuite.AnyFunSuite

class RequestDelaysSuite extends AnyFunSuite {
  private val delays = RequestDelays(40, 250, 0.002, 3000, 1000000, seed = 7)

  private def sorted(delays: RequestDelays): IndexedSeq[Long] = (0L until 100000L).map(delays.of(_, 0)).sorted

  test("half of the requests take less than the median, and one in a hundred more than the 99th percentile") {
    val times = sorted(delays.copy(tailRatio = 0))
    assert(math.abs(times(50000) - 40) <= 1)
    assert(math.abs(times(99000) - 250) <= 12)
  }

  test("the given share of requests is in the tail") {
    val slow = sorted(delays).count(_ >= 3000)
    assert(slow > 150 && slow < 250)
  }

  test("content takes time by its size") {
    assert(delays.of(3, 500000) - delays.of(3, 0) == 500)
  }

  test("the same seed gives the same delays, and another seed gives others") {
    assert(sorted(delays) == sorted(delays.copy()))
    assert(sorted(delays) != sorted(delays.copy(seed = 8)))
  }

  test("without a median there are no delays") {
    assert(sorted(RequestDelays(0, 0, 0, 0, 0, seed = 1)).last == 0)
  }
}
