// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.util.Properties
import java.util.concurrent.{Executors, TimeUnit}

import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration._

import org.apache.spark.{SparkEnv, TaskContext, TaskContextImpl}
import org.apache.spark.executor.TaskMetrics
import org.apache.spark.memory.TaskMemoryManager
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.execution.streaming.state.{StateStore, UnsafeRowPair}

/** Attempts that use a store at the same time, in lines whose database takes and releases the lock itself. */
class LockedDatabaseSuite extends ComparisonSuite with Patience {

  /** A task attempt, which runs on its own thread. */
  private class Task(attempt: Long) extends AutoCloseable {
    private val thread = Executors.newSingleThreadExecutor()
    private implicit val executor: ExecutionContext = ExecutionContext.fromExecutor(thread)
    private val context = new TaskContextImpl(
      0,
      0,
      0,
      attempt,
      0,
      1,
      new TaskMemoryManager(SparkEnv.get.memoryManager, attempt),
      new Properties,
      SparkEnv.get.metricsSystem,
      TaskMetrics.empty,
      1,
      Map.empty
    )

    def begin[A](body: => A): Future[A] = Future {
      TaskContext.setTaskContext(context)
      try body
      finally TaskContext.unset()
    }

    def apply[A](body: => A): A = Await.result(begin(body), 60.seconds)

    /** Ends the attempt as failed, so that it seals nothing. */
    def fail(): Unit = apply {
      val error = new IllegalStateException("for this test")
      context.markTaskFailed(error)
      context.markTaskCompleted(Some(error))
    }

    override def close(): Unit = {
      thread.shutdown()
      assert(thread.awaitTermination(60, TimeUnit.SECONDS))
      ()
    }
  }

  private def copyOfFirst(store: StateStore): UnsafeRowPair = {
    val rows = store.iterator()
    val row = rows.next()
    val copy = new UnsafeRowPair(row.key.copy(), row.value.copy())
    while (rows.hasNext) rows.next()
    copy
  }

  /** Tests with a store of a running query, after its first batch, and three attempts. */
  private def holds(name: String)(check: (DstlStateStoreProvider, Task, Task, Task) => Any): Unit = test(name) {
    val playing = new Playing(Operator.totals, ours, fresh("attempts"))
    val query = playing.start()
    val (first, second, third) = (new Task(1001), new Task(1002), new Task(1003))
    try {
      playing.feed(query, batches.head)
      check(StateStores.loaded.collectFirst { case of: DstlStateStoreProvider => of }.get, first, second, third)
    } finally {
      Seq(first, second, third).foreach(_.close())
      query.stop()
    }
  }

  private def valueOf(provider: DstlStateStoreProvider, version: Long, key: UnsafeRow): UnsafeRow = {
    val store = provider.getStore(version)
    try store.get(key)
    finally store.abort()
  }

  holds("an attempt that fails leaves no changes, although another has committed while it waited for the store") {
    (provider, first, waiting, next) =>
      val (held, row) = first {
        val store = provider.getStore(1)
        (store, copyOfFirst(store))
      }
      val got = waiting.begin(provider.getStore(1))
      eventually(assert(StateStores.isAwaited))
      first {
        held.put(row.key, row.value)
        held.commit()
      }
      val failing = Await.result(got, 60.seconds)
      waiting(failing.remove(row.key))
      waiting.fail()
      waiting(failing.abort())
      next(assert(valueOf(provider, 1, row.key) == row.value))
  }

  holds("the abort of an attempt that has committed leaves another's changes") { (provider, first, second, third) =>
    val read = first {
      val read = provider.getReadStore(1)
      provider.getStore(1).commit()
      read
    }
    val (changing, row) = second {
      val store = provider.getStore(1)
      val row = copyOfFirst(store)
      store.remove(row.key)
      store -> row
    }
    first.fail()
    first(read.abort())
    second(changing.commit()): Unit
    third(assert(valueOf(provider, 2, row.key) == null))
  }
}
