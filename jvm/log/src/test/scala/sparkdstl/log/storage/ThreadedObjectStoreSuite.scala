// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.InterruptedIOException
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, Executors}

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.scalatest.concurrent.{Signaler, ThreadSignaler, TimeLimits}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import sparkdstl.log.runtime.ManualExecutor
import sparkdstl.log.storage.StorageOperation.ListObjects

class ThreadedObjectStoreSuite extends AnyFunSuite with TimeLimits with ObjectStoreBehaviour {
  private implicit val signaler: Signaler = ThreadSignaler

  /** Returns an empty listing once the directory's gate is open. */
  private final class GatedStorage extends LogStorage {
    private val gates = new ConcurrentHashMap[String, CountDownLatch]
    private val entered = new ConcurrentHashMap[String, CountDownLatch]

    def open(name: String): Unit = latch(gates, name).countDown()

    def awaitEntered(name: String): Unit = latch(entered, name).await()

    override def replacesAtomically: Boolean = true
    override def deletionPageSize: Int = 1

    override def perform[A](operation: StorageOperation[A]): A = operation match {
      case ListObjects(directory) =>
        latch(entered, directory.getName).countDown()
        try latch(gates, directory.getName).await()
        catch { case _: InterruptedException => throw new InterruptedIOException(directory.getName) }
        Nil
      case other => throw new UnsupportedOperationException(other.toString)
    }

    private def latch(latches: ConcurrentHashMap[String, CountDownLatch], name: String): CountDownLatch =
      latches.computeIfAbsent(name, _ => new CountDownLatch(1))
  }

  private def holds(name: String, threads: Int)(check: (GatedStorage, ThreadedObjectStore) => Any): Unit =
    test(name)(failAfter(Span(20, Seconds)) {
      val storage = new GatedStorage
      val store = new ThreadedObjectStore(storage, threads, 3, Executors.newCachedThreadPool())
      try check(storage, store)
      finally store.close()
    })

  holds("a hedge gets a thread when all are stuck, and other requests wait", threads = 1) { (storage, store) =>
    val stuck = store.begin(ListObjects(new Path("/stuck")))
    storage.awaitEntered("stuck")
    val other = store.begin(ListObjects(new Path("/other")))
    val hedge = store.begin(ListObjects(new Path("/stuck")))
    assert(store.busyThreads == 2 && !other.result.isCompleted)
    storage.open("stuck")
    storage.open("other")
    Seq(stuck, hedge, other).foreach(get(_))
  }

  holds("a stuck cancelled attempt is interrupted when another attempt needs its thread", threads = 1) {
    (storage, store) =>
      val stuck = store.begin(ListObjects(new Path("/stuck")))
      storage.awaitEntered("stuck")
      stuck.cancel()
      assert(store.interruptedAttempts == 0)
      storage.open("other")
      get(store.begin(ListObjects(new Path("/other"))))
      intercept[InterruptedIOException](get(stuck))
      assert(store.interruptedAttempts == 1)
  }

  holds("closing interrupts running attempts and fails waiting and new ones", threads = 1) { (storage, store) =>
    val running = store.begin(ListObjects(new Path("/running")))
    storage.awaitEntered("running")
    val waiting = store.begin(ListObjects(new Path("/waiting")))
    store.close()
    intercept[InterruptedIOException](get(running))
    Seq(waiting, store.begin(ListObjects(new Path("/late")))).foreach(attempt =>
      intercept[AttemptNotMade](get(attempt))
    )
  }

  test("the largest number of threads and of attempts at a request of all queries counts") {
    val executor = new ManualExecutor
    val store = new ThreadedObjectStore(new GatedStorage, 1, 2, executor)
    val one = new Path("/one")
    store.ensureAtLeast(1, 4)
    store.ensureAtLeast(1, 3)
    (1 to 5).foreach(_ => store.begin(ListObjects(one)))
    assert(executor.pending == 4)
    store.ensureAtLeast(2, 2)
    (1 to 5).foreach(_ => store.begin(ListObjects(new Path("/other"))))
    assert(executor.pending == 8)
  }

  test("an attempt that replaces a cancelled one gets a thread even if all others ignore interrupts") {
    val executor = new ManualExecutor
    val store = new ThreadedObjectStore(new GatedStorage, 1, 3, executor)
    val dead = new Path("/dead")
    val attempts = mutable.Queue.fill(3)(store.begin(ListObjects(dead)))
    // One request has so many attempts in 200 s, after which S3A ends a dead connection.
    (1 to 20).foreach { _ =>
      attempts.dequeue().cancel()
      attempts.enqueue(store.begin(ListObjects(dead)))
    }
    assert(executor.pending == 23)
    // Another request waits until all stuck attempts are cancelled.
    val other = store.begin(ListObjects(new Path("/other")))
    assert(executor.pending == 23)
    attempts.foreach(_.cancel())
    assert(executor.pending == 24 && !other.result.isCompleted)
  }
}
