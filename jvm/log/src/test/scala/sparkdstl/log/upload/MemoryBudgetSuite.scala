package sparkdstl.log.upload

import java.util.concurrent.CountDownLatch

import org.scalatest.funsuite.AnyFunSuite

class MemoryBudgetSuite extends AnyFunSuite {

  /** A thread that acquires, known to wait when this returns. */
  private final class Waiter(budget: MemoryBudget, bytes: Long) {
    private val waiting = new CountDownLatch(1)
    @volatile private var failure: Option[Throwable] = None
    private val thread = new Thread(() =>
      try budget.acquire(bytes)(() => waiting.countDown())
      catch { case e: Throwable => failure = Some(e) }
    )
    thread.start()
    waiting.await()

    def interrupt(): Unit = thread.interrupt()

    /** The error it ended with, if any. */
    def outcome(): Option[Throwable] = {
      thread.join()
      failure
    }
  }

  test("bytes are granted while they are free") {
    val budget = new MemoryBudget(10)
    assert(budget.tryAcquire(6) && budget.tryAcquire(4) && !budget.tryAcquire(1))
    budget.release(4)
    assert(budget.tryAcquire(4))
    assert(budget.inUse == 10)
  }

  test("more than all is granted when nothing is in use, and only then") {
    val budget = new MemoryBudget(10)
    assert(budget.tryAcquire(100))
    assert(!budget.tryAcquire(1))
    budget.release(100)
    assert(budget.tryAcquire(1))
    assert(!budget.tryAcquire(100))
  }

  test("who waits gets its bytes once they are released, and nobody overtakes") {
    val budget = new MemoryBudget(10)
    budget.tryAcquire(5)
    val large = new Waiter(budget, 10)
    assert(!budget.tryAcquire(1))
    budget.release(5)
    assert(large.outcome().isEmpty)
    assert(budget.inUse == 10 && budget.waiters == 0)
  }

  test("an interrupt ends the wait, takes nothing and lets others pass") {
    val budget = new MemoryBudget(10)
    budget.tryAcquire(5)
    val large = new Waiter(budget, 10)
    val small = new Waiter(budget, 2)
    large.interrupt()
    assert(large.outcome().exists(_.isInstanceOf[InterruptedException]))
    assert(small.outcome().isEmpty)
    assert(budget.inUse == 7)
  }

  test("closing fails those that wait and those that come") {
    val budget = new MemoryBudget(10)
    budget.tryAcquire(5)
    val waiter = new Waiter(budget, 10)
    budget.close()
    assert(waiter.outcome().exists(_.isInstanceOf[IllegalStateException]))
    intercept[IllegalStateException](budget.tryAcquire(1))
  }
}
