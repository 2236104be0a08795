package sparkdstl.log.storage

import java.util.concurrent.ExecutorService
import java.util.concurrent.atomic.LongAdder

import scala.collection.mutable
import scala.concurrent.ExecutionContext

/**
 * Makes attempts at a storage that blocks, each on a thread of its own.
 *
 * `initialThreads` attempts run at a time, more wait in order of arrival. A further attempt at the same request has threads
 * of a second pool, `attemptsAtOnce - 1` times as many: a hedge finds a thread even if all of the first are stuck, and an
 * attempt that replaces a cancelled one takes its place. A stuck cancelled attempt keeps its thread until another attempt
 * needs it; then it is interrupted. Only attempts' threads are interrupted, never a caller's.
 *
 * @param attemptsAtOnce how many attempts at one request may be under way at once
 * @param executor starts every task at once, such as a cached thread pool; owned by this, shut down by [[close]]
 */
final class ThreadedObjectStore(
    storage: LogStorage,
    initialThreads: Int,
    attemptsAtOnce: Int,
    executor: ExecutorService
) extends ObjectStore
    with AutoCloseable {
  private val interrupts = new LongAdder
  private val first = new WorkerThreads(initialThreads, executor, () => interrupts.increment())
  private val further = new WorkerThreads(furtherThreads(initialThreads), executor, () => interrupts.increment())

  // Guarded by this: attempts with one of the first threads that have not ended, by their request.
  private val underWay = mutable.Map.empty[Any, Vector[WorkerThreads#Work[_]]]

  override def replacesAtomically: Boolean = storage.replacesAtomically

  override def deletionPageSize: Int = storage.deletionPageSize

  override def begin[A](operation: StorageOperation[A]): Attempt[A] = attempt(operation)(storage.perform(operation))

  /** Raises the number of attempts that run at a time to at least `threads`. */
  def ensureAtLeast(threads: Int): Unit = {
    first.ensureAtLeast(threads)
    further.ensureAtLeast(furtherThreads(threads))
  }

  /** How many attempts hold a thread now, cancelled ones that are still stuck included. */
  def busyThreads: Int = first.busy + further.busy

  /** How many cancelled attempts were interrupted because their thread was needed. */
  def interruptedAttempts: Long = interrupts.sum

  /** Interrupts what runs, and fails what waits and what comes. */
  override def close(): Unit = {
    first.close()
    further.close()
    executor.shutdown()
  }

  private def furtherThreads(threads: Int): Int = math.max(1, threads * (attemptsAtOnce - 1))

  /**
   * An attempt at anything else that blocks.
   *
   * @param request attempts with the same value are attempts at one request
   */
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
