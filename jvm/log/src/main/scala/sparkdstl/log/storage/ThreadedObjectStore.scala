package sparkdstl.log.storage

import java.util.concurrent.ExecutorService
import java.util.concurrent.atomic.LongAdder

import scala.collection.mutable
import scala.concurrent.ExecutionContext

import org.apache.hadoop.fs.Path

/**
 * Makes attempts at a storage that blocks, each on a thread of its own.
 *
 * `initialThreads` attempts run at a time, more wait in order of arrival. An attempt beside one that already runs for
 * the same object has threads apart, `attemptsAtOnce - 1` times as many: whatever all others are stuck in, a hedge finds
 * a thread, and an attempt that replaces a cancelled one takes the place of that. A cancelled attempt that is stuck keeps
 * its thread until another needs it; then it is interrupted. Only attempts' threads are ever interrupted, never a caller's.
 *
 * @param attemptsAtOnce
 *   how many attempts at one request may be under way at once
 * @param executor
 *   starts every task at once, such as a cached thread pool; owned by this, shut down by [[close]]
 */
final class ThreadedObjectStore(
    storage: LogStorage,
    initialThreads: Int,
    attemptsAtOnce: Int,
    executor: ExecutorService
) extends ObjectStore
    with AutoCloseable {
  import ThreadedObjectStore.Asked

  private val interrupts = new LongAdder
  private val first = new WorkerThreads(initialThreads, executor, () => interrupts.increment())
  private val further = new WorkerThreads(furtherThreads(initialThreads), executor, () => interrupts.increment())

  // Guarded by this: attempts with one of the first threads that have not ended, by what they ask.
  private val underWay = mutable.Map.empty[Asked, Vector[WorkerThreads#Work[_]]]

  override def put(path: Path, content: Payload): Attempt[Unit] = attempt("put", path)(storage.put(path, content))

  override def replace(path: Path, content: Payload): Attempt[Unit] =
    attempt("replace", path)(storage.replace(path, content))

  override def replacesAtomically: Boolean = storage.replacesAtomically

  override def create(path: Path, content: Payload): Attempt[Unit] =
    attempt("create", path)(storage.create(path, content))

  override def createsExclusively(path: Path): Attempt[Boolean] =
    attempt("createsExclusively", path)(storage.createsExclusively(path))

  override def read(path: Path, maxLength: Long): Attempt[Array[Byte]] =
    attempt("read", path)(storage.read(path, maxLength))

  override def readTail(path: Path, maxLength: Int): Attempt[ObjectTail] =
    attempt("readTail", path)(storage.readTail(path, maxLength))

  override def readRange(path: Path, offset: Long, length: Int): Attempt[Array[Byte]] =
    attempt("readRange", path, offset)(storage.readRange(path, offset, length))

  override def list(directory: Path): Attempt[Seq[StoredObject]] = attempt("list", directory)(storage.list(directory))

  override def listRecursively(directory: Path): Attempt[Seq[StoredObject]] =
    attempt("listRecursively", directory)(storage.listRecursively(directory))

  override def listUnpublished(directory: Path): Attempt[Seq[StoredObject]] =
    attempt("listUnpublished", directory)(storage.listUnpublished(directory))

  override def delete(paths: Seq[Path]): Attempt[Unit] =
    attempt("delete", paths.headOption.orNull, paths.size.toLong)(storage.delete(paths))

  override def deletionPageSize: Int = storage.deletionPageSize

  /** Lets at least so many attempts run at a time. */
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
   * @param operation
   *   names it: attempts at the same operation on the same path are attempts at one request
   */
  def attempt[T](operation: String, path: Path, detail: Long = 0)(action: => T): Attempt[T] = {
    val asked = Asked(operation, path, detail)
    val isFurther = synchronized(underWay.getOrElse(asked, Vector.empty)).exists(_.isRunning)
    val work = (if (isFurther) further else first).submit(() => action)
    if (!isFurther) {
      synchronized { underWay(asked) = underWay.getOrElse(asked, Vector.empty) :+ work }
      work.result.onComplete(_ => ended(asked, work))(ExecutionContext.parasitic)
    }
    new Attempt(work.result, () => work.cancel())
  }

  private def ended(asked: Asked, work: WorkerThreads#Work[_]): Unit = synchronized {
    underWay.get(asked).map(_.filterNot(_ eq work)).foreach { others =>
      if (others.isEmpty) underWay -= asked else underWay(asked) = others
    }
  }
}

private object ThreadedObjectStore {

  /** What tells one request from another: attempts at the same one have these in common. */
  final case class Asked(operation: String, path: Path, detail: Long)
}
