// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.runtime.{ManualTimer, TestRuntime}

class RecoveryProgressSuite extends AnyFunSuite {

  private class Fixture {
    val timer = new ManualTimer
    val progress = new RecoveryProgress(TestRuntime(timer))
  }

  test("progress shows the fetched and the missing part of the stores that are loading")(new Fixture {
    val first = progress.begin("first", 20)
    val second = progress.begin("second", 20)
    assert(progress("storesLoading") == 2 && progress("changelogsToDo") == 0)
    first.fetching(100)
    second.fetching(50)
    first.fetched(30)
    second.foundLocally(20)
    assert(progress("snapshotBytesToDo") == 100 && progress("snapshotBytesFetched") == 30)
    assert(progress("snapshotBytesLocal") == 20)
    // An earlier snapshot replaces a damaged one.
    first.fetching(40)
    assert(progress("snapshotBytesToDo") == 70)
    first.fetched(40)
    first.reached(12)
    assert(progress("changelogsToDo") == 8 && progress("snapshotBytesToDo") == 30)
    first.reached(13)
    assert(progress("changelogsToDo") == 7)
    first.end(isLoaded = true)
    second.end(isLoaded = false)
    assert(progress("storesLoading") == 0 && progress("storesLoaded") == 1)
    assert(progress("changelogsToDo") == 0 && progress("snapshotBytesToDo") == 0 &&
      progress("snapshotBytesFetched") == 70)
  })

  test("a slow load is reported repeatedly until it ends")(new Fixture {
    val store = progress.begin("slow", 20)
    (1 to 3).foreach { _ =>
      timer.advance(10000)
      assert(timer.pending == 1)
    }
    store.end(isLoaded = true)
    timer.advance(60000)
    assert(timer.pending == 0)
  })
}
