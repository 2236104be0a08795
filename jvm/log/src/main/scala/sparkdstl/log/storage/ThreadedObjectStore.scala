// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.util.concurrent.ExecutorService
import java.util.concurrent.atomic.LongAdder

import scala.collection.mutable
import scala.concurrent.ExecutionContext

/**
 * Makes attempts at a blocking storage, each on its own thread.
 *
 * `initialThreads` attempts run at a time; more wait in order of arrival. Further attempts at a request run in a second pool
 * with `initialAttempts - 1` times as many threads, so that a hedge finds a thread even if all threads of the first pool hang.
 * An attempt that replaces a cancelled one takes its place. A hanging cancelled attempt keeps its thread until another attempt
 * needs it, and is interrupted then. Callers' threads are never interrupted.
 *
 * @param initialAttempts maximum of concurrent attempts at a request
 * @param executor starts every task at once, such as a cached thread pool; shut down by [[close]]
 */
final class ThreadedObjectStore(
    initialStorage: LogStorage,
    initialThreads: Int,
    initialAttempts: Int,
    executor: ExecutorService
) extends ObjectStore
    with AutoCloseable {
  @volatile private var storage = initialStorage
  private val interrupts = new LongAdder
  private val first = new WorkerThreads(initialThreads, executor, () => interrupts.increment())
  private val further = new WorkerThreads(1, executor, () => interrupts.increment())

  // Guarded by this.
  private var threads = initialThreads
  private var attemptsAtOnce = initialAttempts
  ensureAtLeast(initialThreads, initialAttempts)

  // Unfinished attempts in the first pool, by request. Guarded by this.
  private val underWay = mutable.Map.empty[Any, Vector[WorkerThreads#Work[_]]]

  override def replacesAtomically: Boolean = storage.replacesAtomically
  override def deletionPageSize: Int = storage.deletionPageSize

  override def begin[A](operation: StorageOperation[A]): Attempt[A] = attempt(operation)(storage.perform(operation))

  /** Makes later attempts at `other`: another client of the same storage. */
  def use(other: LogStorage): Unit = storage = other

  /** Raises the number of attempts that run at a time, and that of attempts at a request, to at least these. */
  def ensureAtLeast(threads: Int, attemptsAtOnce: Int): Unit = synchronized {
    this.threads = math.max(this.threads, threads)
    this.attemptsAtOnce = math.max(this.attemptsAtOnce, attemptsAtOnce)
    first.ensureAtLeast(this.threads)
    further.ensureAtLeast(this.threads * (this.attemptsAtOnce - 1))
  }

  /** Attempts that hold a thread, hanging cancelled ones included. */
  def busyThreads: Int = first.busy + further.busy

  /** Cancelled attempts that were interrupted because their thread was needed. */
  def interruptedAttempts: Long = interrupts.sum

  /** Interrupts running attempts, and fails waiting and later ones. */
  override def close(): Unit = {
    first.close()
    further.close()
    executor.shutdown()
  }

  /** An attempt at another blocking action; `request` identifies its request. */
  def attempt[T](request: Any)(action: => T): Attempt[T] = {
    val isFurther = synchronized(underWay.getOrElse(request, Vector.empty)).exists(_.isRunning)
    val work = (if (isFurther) further else first).submit(() => action)
    if (!isFurther) {
      synchronized { underWay(request) = underWay.getOrElse(request, Vector.empty) :+ work }
      work.result.onComplete(_ => ended(request, work))(ExecutionContext.parasitic)
    }
    new Attempt(work.result, () => work.cancel())
  }

  private def ended(request: Any, work: WorkerThreads#Work[_]): Unit = synchronized {
    underWay.get(request).map(_.filterNot(_ eq work)).foreach { others =>
      if (others.isEmpty) underWay -= request else underWay(request) = others
    }
  }
}
