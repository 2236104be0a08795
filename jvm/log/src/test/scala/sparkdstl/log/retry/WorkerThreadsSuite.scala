package sparkdstl.log.retry

import org.scalatest.funsuite.AnyFunSuite

class WorkerThreadsSuite extends AnyFunSuite {

  test("no more than the bound run, and the others follow in order") {
    val threads = new ManualExecutor
    val workers = new WorkerThreads(2, threads, () => ())
    var ran = Vector.empty[Int]
    (1 to 4).foreach(n => workers.submit(() => ran :+= n))
    assert(threads.pending == 2 && workers.busy == 2)
    threads.runNext()
    assert(threads.pending == 2)
    threads.runAll()
    assert(ran == Vector(1, 2, 3, 4))
    assert(workers.busy == 0)
  }

  test("work that is disposed of before it has a thread never runs") {
    val threads = new ManualExecutor
    val workers = new WorkerThreads(1, threads, () => ())
    var ran = Vector.empty[Int]
    workers.submit(() => ran :+= 1)
    workers.submit(() => ran :+= 2).disposeOf()
    threads.runAll()
    assert(ran == Vector(1))
  }

  test("disposable work is left alone while there are threads, and gives way, oldest first, when there are none") {
    val threads = new ManualExecutor
    var interrupted = 0
    val workers = new WorkerThreads(2, threads, () => interrupted += 1)
    val works = Seq(workers.submit(() => ()), workers.submit(() => ()))
    works.foreach(_.disposeOf())
    assert(interrupted == 0)
    workers.submit(() => ())
    assert(interrupted == 1 && threads.pending == 3)
  }

  test("work that ignores interrupts takes at most as many threads again") {
    val threads = new ManualExecutor
    val workers = new WorkerThreads(2, threads, () => ())
    (1 to 10).foreach(_ => workers.submit(() => ()).disposeOf())
    assert(workers.busy == 4 && threads.pending == 4)
  }

  test("an interrupt does not reach the work that uses the thread next") {
    // Unlike the JVM's pools, it does not clear interrupts itself.
    val threads = new ManualExecutor
    val workers = new WorkerThreads(1, threads, () => ())
    var interrupted = Vector.empty[Boolean]
    def note(): Unit = interrupted :+= Thread.currentThread().isInterrupted
    lazy val first: WorkerThreads#Work = workers.submit { () =>
      first.disposeOf()
      workers.submit(() => note()): Unit
      note()
    }
    first
    try threads.runAll()
    finally Thread.interrupted(): Unit
    assert(interrupted == Vector(true, false))
  }

  test("after closing nothing is started") {
    val threads = new ManualExecutor
    val workers = new WorkerThreads(1, threads, () => ())
    workers.close()
    workers.submit(() => ())
    assert(threads.pending == 0)
  }
}
