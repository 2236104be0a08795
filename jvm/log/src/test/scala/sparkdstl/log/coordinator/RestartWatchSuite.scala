// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.coordinator.view.{GuardedState, LogView, Restart, RunState}
import sparkdstl.log.read.EntryFound
import sparkdstl.log.runtime.ManualTimer

class RestartWatchSuite extends AnyFunSuite {

  test("the watch reports the stores that no task has reached until a batch is committed") {
    val timer = new ManualTimer
    val stores = Set("0/0", "0/1", "0/2")
    val view = LogView.start(1, Map.empty, EntryFound.Absent)
    val state = new GuardedState(RunState(view, exclusive = true, restart = Some(Restart(stores.size, stores))))
    val watch = new RestartWatch("query", state, timer)
    Seq("0/0", "0/0", "1/0").foreach(watch.reached)
    assert(state.get.restart.exists(_.awaited == Set("0/1", "0/2")))
    (1 to 3).foreach { _ =>
      timer.advance(10000)
      assert(timer.pending == 1)
    }
    state.update(_.copy(restart = None))
    timer.advance(10000)
    watch.reached("0/1")
    assert(state.get.restart.isEmpty && timer.pending == 0)
  }
}
