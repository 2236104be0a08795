// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.transport.{BarrierReport, FromDriver, SnapshotPlace, ToDriver, ToExecutor}

class RunWorkerSuite extends AnyFunSuite {
  import Completed._

  test("the highest release of each store is sent in the background, and again after a failure")(new WorkerFixture {
    worker.release("0/0", 3)
    worker.release("0/0", 2)
    worker.release("0/1", 7)
    assert(asks.isEmpty)
    timer.advance(1000)
    def released = asks.map(_._1).map { case ToDriver.Release(lowest) => lowest.toMap; case other => fail(s"$other") }
    assert(released == Seq(Map("0/0" -> 3L, "0/1" -> 7L)))
    // The link does not answer until the deadline, and the releases are kept.
    timer.advance(60000)
    worker.release("0/2", 1)
    timer.advance(1000)
    assert(released.last == Map("0/0" -> 3L, "0/1" -> 7L, "0/2" -> 1L))
    answer(FromDriver.Noted)
    timer.advance(600000)
    assert(asks.size == 2)
  })

  test("the worker asks the driver once whether it coordinates the run, and again after a timeout")(new WorkerFixture {
    worker.opened(): Unit
    worker.opened(): Unit
    assert(asks.size == 1 && !worker.isCoordinated)
    timer.advance(60000)
    answers = { case ToDriver.Open => FromDriver.NotCoordinated }
    assert(result(worker.task(1, 0, 1)).isEmpty)
    assert(asks.size == 2 && !worker.isCoordinated)
  })

  test("a task of a replaced run fails instead of bypassing the log")(new WorkerFixture {
    answers = { case ToDriver.Open => FromDriver.Superseded }
    assert(failure(worker.task(1, 0, 1)).getMessage.contains("DSTL_NOT_COORDINATED"))
  })

  test("changes that bypass the log are reported once, and again if the driver did not answer")(new WorkerFixture {
    private def reports = asks.count(_._1.isInstanceOf[ToDriver.Bypass])
    worker.bypass("it is another provider")
    worker.bypass("it is another provider")
    assert(reports == 1)
    stayAway()
    timer.advance(60000)
    val before = reports
    worker.bypass("it is another provider")
    assert(reports == before + 1)
    answer(FromDriver.Noted)
    worker.bypass("it is another provider")
    assert(reports == before + 1)
  })

  test("a driver that does not coordinate the run returns no versions of a store")(new WorkerFixture {
    val versions = FromDriver.Versions(Vector(1, 2), Vector(SnapshotPlace(1, None, 0)), 0, 1)
    answers = {
      case ToDriver.Open => FromDriver.Opened(7, 1, 100, Map(0L -> 10L))
      case ToDriver.ListStore("0/0") => versions
    }
    assert(worker.entryLength(0).isEmpty)
    assert(result(worker.versions("0/0")).contains(versions))
    assert(worker.entryLength(0).contains(10L))
    Seq(FromDriver.Superseded, FromDriver.NotCoordinated).foreach { answer =>
      answers = { case _: ToDriver.ListStore => answer }
      assert(result(worker.versions("0/0")).isEmpty)
    }
  })

  test("a worker learns the length of each entry from the seal after it, and keeps those of the newest")(
    new WorkerFixture {
      def seal(entry: Long, bytes: Long): Unit = {
        val task = newTask()
        write(task, 0, 1)
        val sealing = task.seal()
        answer(FromDriver.Accepted(Some(BarrierReport(entry, 0, 0, bytes, 0, 0, 0, 0, 1, 0))))
        result(sealing)
      }
      (1L to 1001L).foreach(entry => seal(entry, 10 * entry))
      assert(worker.entryLength(2).contains(20L) && worker.entryLength(1001).contains(10010L))
      assert(worker.entryLength(1).isEmpty && worker.entryLength(1002).isEmpty)
    }
  )

  test("only registered stores are dropped, and only the registered instance unregisters a store")(new WorkerFixture {
    var dropped = Vector.empty[(String, Long)]
    def store(name: String): LocalStore = attempt => dropped :+= name -> attempt
    val (first, second) = (store("first"), store("second"))
    worker.register("0/0", first)
    worker.register("0/0", second)
    worker.unregister("0/0", first)
    worker.receive(ToExecutor.Drop(5, Vector("0/0", "0/1")))
    assert(dropped == Vector("second" -> 5L))
    worker.unregister("0/0", second)
    worker.receive(ToExecutor.Drop(6, Vector("0/0")))
    assert(dropped.size == 1)
  })
}
