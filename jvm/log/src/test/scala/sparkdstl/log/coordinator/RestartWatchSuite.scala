package sparkdstl.log.coordinator

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.runtime.{ManualTimer, TestRuntime}

class RestartWatchSuite extends AnyFunSuite {

  private class Fixture(stores: String*) {
    val timer = new ManualTimer
    val watch = new RestartWatch("query", stores.toSet, TestRuntime(timer))
  }

  test("it counts the stores that no task has come to, and reports until a batch is committed") {
    val fixture = new Fixture("0/0", "0/1", "0/2")
    import fixture._
    assert(watch.awaited == 3 && timer.pending == 0)
    Seq("0/0", "0/0", "1/0").foreach(watch.asked)
    assert(watch.awaited == 2)
    (1 to 3).foreach { _ =>
      timer.advance(10000)
      assert(timer.pending == 1)
    }
    watch.end()
    assert(watch.awaited == 0)
    timer.advance(60000)
    watch.asked("0/1")
    assert(timer.pending == 0)
  }

  test("a query that has no state yet is not restarted") {
    val fixture = new Fixture()
    import fixture._
    watch.asked("0/0")
    assert(watch.awaited == 0 && timer.pending == 0)
  }
}
