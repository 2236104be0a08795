// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.scalatest.funsuite.AnyFunSuite

class SerialRequestsSuite extends AnyFunSuite {
  test("requests beside one another count once") {
    assert(SerialRequests.of(Nil) == 0)
    assert(SerialRequests.of(Seq(Interval(0, 10), Interval(10, 20), Interval(25, 30))) == 3)
    assert(SerialRequests.of(Seq(Interval(0, 10), Interval(1, 9), Interval(2, 30), Interval(12, 20))) == 2)
  }
}
