// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.error

import java.io.IOException

import org.scalatest.funsuite.AnyFunSuite

class CausesSuite extends AnyFunSuite {
  test("the description of an error shows its root cause once") {
    val error = new IOException("outer", new IOException("middle", new IOException("root")))
    assert(Causes.describe(error) == "java.io.IOException: outer; caused by java.io.IOException: root")
    assert(Causes.describe(new IOException(new IOException("root"))) ==
      "java.io.IOException: java.io.IOException: root")
    assert(Causes.describe(new IOException("alone")) == "java.io.IOException: alone")
  }
}
