// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import java.util.concurrent.{CountDownLatch, Executors}

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.UncaughtErrors

class ScheduledTimerSuite extends AnyFunSuite {
  test("an action without memory reaches the handler of uncaught errors, and later actions run") {
    val timer = new ScheduledTimer(Executors.defaultThreadFactory)
    val fatal = new OutOfMemoryError("injected")
    try UncaughtErrors.during { uncaught =>
        val later = new CountDownLatch(1)
        timer.schedule(0)(() => throw fatal)
        timer.schedule(1)(() => later.countDown())
        later.await()
        assert(uncaught() == Seq(fatal))
      }
    finally timer.close()
  }
}
