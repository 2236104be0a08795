// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.util.concurrent.Executor

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.runtime.ManualExecutor

class WorkerThreadsSuite extends AnyFunSuite {

  private class Fixture(bound: Int) {
    val threads = new ManualExecutor
    var interrupted = 0
    val workers = new WorkerThreads(bound, threads, () => interrupted += 1)
    var ran = Vector.empty[Int]
  }

  test("the number of running tasks is bounded, and the others follow in order")(new Fixture(2) {
    (1 to 4).foreach(n => workers.submit(() => ran :+= n))
    assert(threads.pending == 2 && workers.busy == 2)
    threads.runNext()
    assert(threads.pending == 2)
    threads.runAll()
    assert(ran == Vector(1, 2, 3, 4))
    assert(workers.busy == 0)
  })

  test("work that is cancelled before it has a thread never runs")(new Fixture(1) {
    workers.submit(() => ran :+= 1)
    val second = workers.submit(() => ran :+= 2)
    second.cancel()
    threads.runAll()
    assert(ran == Vector(1))
    assert(StorageErrors.isDefinite(second.result.value.get.failed.get))
  })

  test("the oldest cancelled work is interrupted when no thread is free")(new Fixture(2) {
    val works = Seq(workers.submit(() => ()), workers.submit(() => ()))
    works.foreach(_.cancel())
    assert(interrupted == 0)
    workers.submit(() => ())
    assert(interrupted == 1 && threads.pending == 3)
  })

  test("work that ignores interrupts takes a bounded number of threads")(new Fixture(2) {
    (1 to 100).foreach(_ => workers.submit(() => ()).cancel())
    val bound = 2 + 2 * WorkerThreads.LingeringPerThread
    assert(workers.busy == bound && threads.pending == bound)
  })

  test("an interrupt does not reach the next work on the same thread")(new Fixture(1) {
    // Unlike the JVM's pools, this executor does not clear interrupts itself.
    var seen = Vector.empty[Boolean]
    def note(): Unit = seen :+= Thread.currentThread().isInterrupted
    lazy val first: WorkerThreads#Work[Unit] = workers.submit { () =>
      first.cancel()
      workers.submit(() => note()): Unit
      note()
    }
    first
    try threads.runAll()
    finally Thread.interrupted(): Unit
    assert(seen == Vector(true, false))
  })

  /** Fails to start threads while it is exhausted. */
  private final class Exhausted(threads: Executor) extends Executor {
    var exhausted = false
    override def execute(task: Runnable): Unit =
      if (exhausted) throw new OutOfMemoryError("unable to create native thread") else threads.execute(task)
  }

  test("work fails and frees its place if no thread can be started") {
    val threads = new ManualExecutor
    val executor = new Exhausted(threads)
    val workers = new WorkerThreads(1, executor, () => ())
    executor.exhausted = true
    val works = (1 to 3).map(_ => workers.submit(() => ()))
    works.foreach { work =>
      val error = work.result.value.get.failed.get
      assert(error.getMessage.contains("unable to create native thread"))
      assert(StorageErrors.isDefinite(error) && StorageErrors.isRetryable(error))
    }
    assert(workers.busy == 0)
    executor.exhausted = false
    val next = workers.submit(() => "done")
    threads.runAll()
    assert(next.result.value.get.get == "done")
  }

  test("work without memory fails, frees its place, and ends its thread with the error")(new Fixture(1) {
    val fatal = new OutOfMemoryError("injected")
    val works = Seq(workers.submit(() => throw fatal), workers.submit(() => ran :+= 2))
    assert(intercept[OutOfMemoryError](threads.runNext()) eq fatal)
    assert(works.head.result.value.get.failed.get.getCause eq fatal)
    threads.runAll()
    assert(ran == Vector(2) && workers.busy == 0)
  })

  test("waiting work begins when the bound grows")(new Fixture(1) {
    (1 to 3).foreach(_ => workers.submit(() => ()))
    assert(threads.pending == 1)
    workers.ensureAtLeast(2)
    workers.ensureAtLeast(1)
    assert(threads.pending == 2)
  })
}
