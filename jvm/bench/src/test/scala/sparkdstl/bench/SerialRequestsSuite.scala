// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.scalatest.funsuite.AnyFunSuite

class SerialRequestsSuite extends AnyFunSuite {
  test("requests beside one another count once") {
    def of(times: (Long, Long)*): Seq[String] =
      SerialRequests.of(times.map { case (begun, ended) => TimedRequest(s"$begun-$ended", begun, ended) }).map(_.what)
    assert(of() == Nil)
    assert(of(0L -> 10L, 10L -> 20L, 25L -> 30L) == Seq("0-10", "10-20", "25-30"))
    assert(of(0L -> 10L, 1L -> 9L, 2L -> 30L, 12L -> 20L) == Seq("1-9", "12-20"))
  }
}
