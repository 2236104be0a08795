// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import scala.concurrent.Future

import org.scalatest.funsuite.AnyFunSuite

class MemoryBudgetSuite extends AnyFunSuite {

  private def isGranted(acquisition: Future[Unit]): Boolean = acquisition.value.exists(_.isSuccess)

  test("bytes are granted while memory is free") {
    val budget = new MemoryBudget(10)
    assert(isGranted(budget.acquire(6)) && isGranted(budget.acquire(4)))
    val waiting = budget.acquire(1)
    assert(!isGranted(waiting) && budget.waiters == 1)
    budget.release(4)
    assert(isGranted(waiting) && budget.inUse == 7)
  }

  test("a request larger than the budget is granted only if nothing is in use") {
    val budget = new MemoryBudget(10)
    assert(isGranted(budget.acquire(100)))
    val small = budget.acquire(1)
    val large = budget.acquire(100)
    assert(!isGranted(small))
    budget.release(100)
    assert(isGranted(small) && !isGranted(large))
    budget.release(1)
    assert(isGranted(large))
  }

  test("released bytes are granted in the order of the requests") {
    val budget = new MemoryBudget(10)
    budget.acquire(5)
    val large = budget.acquire(10)
    val small = budget.acquire(1)
    assert(!isGranted(large) && !isGranted(small))
    budget.release(5)
    assert(isGranted(large) && !isGranted(small))
    assert(budget.inUse == 10 && budget.waiters == 1)
  }

  test("a budget that grows grants waiting requests, and never shrinks") {
    val budget = new MemoryBudget(10)
    budget.acquire(10)
    val waiter = budget.acquire(10)
    budget.ensureAtLeast(20)
    budget.ensureAtLeast(5)
    assert(isGranted(waiter) && budget.inUse == 20)
  }

  test("a shortage notifies the listeners, and bytes that they release are granted at once") {
    val budget = new MemoryBudget(10)
    budget.acquire(10)
    val listening = budget.onShortage(() => budget.release(10))
    assert(isGranted(budget.acquire(4)) && budget.inUse == 4)
    listening.cancel()
    assert(!isGranted(budget.acquire(10)) && budget.inUse == 4)
  }
}
