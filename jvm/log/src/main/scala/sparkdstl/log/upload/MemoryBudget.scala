package sparkdstl.log.upload

import java.util.concurrent.CancellationException

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import sparkdstl.log.runtime.Cancellable

/**
 * Bounds memory: who asks for more bytes than are free waits, in order of asking. Nobody blocks. Thread-safe.
 *
 * A request larger than the whole budget is granted once nothing else is in use, rather than never. One budget may
 * serve all queries of a process: those who hold memory that they could give back listen for shortage.
 *
 * @param initialBytes
 *   the budget
 */
final class MemoryBudget(initialBytes: Long) extends AutoCloseable {
  require(initialBytes > 0, s"a budget must be positive, not $initialBytes")

  // All guarded by this.
  private var maxBytes = initialBytes
  private var used = 0L
  private val waiting = mutable.LinkedHashSet.empty[Acquisition]
  private val listeners = mutable.LinkedHashSet.empty[Listener]
  private var closed = false

  /** Asks for `bytes`. Whoever is granted them gives them back by [[release]]. */
  def acquire(bytes: Long): Acquisition = {
    val acquisition = new Acquisition(bytes)
    val refused = synchronized {
      if (!closed) waiting += acquisition
      closed
    }
    if (refused) acquisition.fail(new IllegalStateException("the uploader is closed"))
    else {
      grantWhatIsFree()
      if (!acquisition.granted.isCompleted) synchronized(listeners.toVector).foreach(_.onShortage())
    }
    acquisition
  }

  def release(bytes: Long): Unit = {
    synchronized(used -= bytes)
    grantWhatIsFree()
  }

  /** Makes the budget at least so large. */
  def ensureAtLeast(bytes: Long): Unit = {
    synchronized { maxBytes = math.max(maxBytes, bytes) }
    grantWhatIsFree()
  }

  /** Calls `action`, without any lock, whenever somebody begins to wait: it may cause others to release. */
  def onShortage(action: () => Unit): Cancellable = {
    val listener = new Listener(action)
    synchronized(listeners += listener)
    () => synchronized { val _ = listeners -= listener }
  }

  /** Bytes taken now. */
  def inUse: Long = synchronized(used)

  /** How many wait now. */
  def waiters: Int = synchronized(waiting.size)

  /** Fails those that wait, and all that come, with an `IllegalStateException`. */
  override def close(): Unit = {
    val refused = synchronized {
      closed = true
      val refused = waiting.toVector
      waiting.clear()
      refused
    }
    refused.foreach(_.fail(new IllegalStateException("the uploader is closed")))
  }

  private def grantWhatIsFree(): Unit = {
    val granted = synchronized {
      val granted = mutable.ArrayBuffer.empty[Acquisition]
      while (waiting.headOption.exists(first => used == 0 || used + first.bytes <= maxBytes)) {
        val first = waiting.head
        waiting -= first
        used += first.bytes
        granted += first
      }
      granted
    }
    granted.foreach(_.succeed())
  }

  private final class Listener(action: () => Unit) {
    def onShortage(): Unit = action()
  }

  /** Bytes asked for. */
  final class Acquisition private[MemoryBudget] (private[MemoryBudget] val bytes: Long) {
    private val promise = Promise[Unit]()

    /** Completes when the bytes are taken. */
    def granted: Future[Unit] = promise.future

    /**
     * Takes the request back if nothing was granted yet, and says whether that was so; [[granted]] then fails with a
     * `CancellationException`.
     */
    def cancel(): Boolean = {
      val waited = MemoryBudget.this.synchronized(waiting.remove(this))
      if (waited) {
        fail(new CancellationException("the memory is not wanted any more"))
        grantWhatIsFree()
      }
      waited
    }

    private[MemoryBudget] def succeed(): Unit = {
      val _ = promise.trySuccess(())
    }

    private[MemoryBudget] def fail(error: Throwable): Unit = {
      val _ = promise.tryFailure(error)
    }
  }
}
