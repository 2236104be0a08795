package sparkdstl.log.retry

import java.util.concurrent.ExecutorService

import scala.collection.mutable

/**
 * Runs attempts on a bounded number of threads, of which attempts that no longer matter give way to those that do.
 *
 * At most `maxThreads` attempts count as running; more wait in order of arrival. When one waits, the attempt that has
 * been disposable (`Work.disposeOf`) for longest is interrupted and counts no more, though it may take its time to
 * end. At most `maxThreads` such linger at a time, so there are never more than twice `maxThreads` threads.
 *
 * @param threads
 *   starts every task at once; shut down by [[close]]
 * @param onInterrupt
 *   called for each attempt that is interrupted to give way
 */
final class WorkerThreads(maxThreads: Int, threads: ExecutorService, onInterrupt: () => Unit) extends AutoCloseable {
  require(maxThreads > 0, s"at least one thread is needed, not $maxThreads")

  // All guarded by this. Every piece of work is in at most one of these.
  private val waiting = mutable.LinkedHashSet.empty[Work]
  private val running = mutable.LinkedHashSet.empty[Work]
  private val disposable = mutable.LinkedHashSet.empty[Work]
  private val lingering = mutable.LinkedHashSet.empty[Work]
  private var closed = false

  /** Runs `action` as soon as there is a thread for it. After [[close]], never. */
  def submit(action: () => Unit): Work = {
    val work = new Work(action)
    val ready = synchronized {
      if (closed) Nil
      else {
        waiting += work
        admit()
      }
    }
    ready.foreach(start)
    work
  }

  /** How many attempts hold a thread, those that linger after an interrupt included. */
  def busy: Int = synchronized(running.size + disposable.size + lingering.size)

  /** Interrupts what runs and drops what waits. */
  override def close(): Unit = {
    synchronized {
      closed = true
      waiting.clear()
    }
    val _ = threads.shutdownNow()
  }

  /** Moves waiting work to running, as far as there are threads, and says what is to be started. Lock held. */
  private def admit(): Seq[Work] = {
    val admitted = mutable.ArrayBuffer.empty[Work]
    while (waiting.nonEmpty && (running.size + disposable.size < maxThreads || makeRoom())) {
      val work = waiting.head
      waiting -= work
      running += work
      admitted += work
    }
    admitted.toSeq
  }

  /** Interrupts the oldest disposable attempt. Lock held. */
  private def makeRoom(): Boolean =
    disposable.headOption.filter(_ => lingering.size < maxThreads).exists { work =>
      disposable -= work
      lingering += work
      work.interrupt()
      onInterrupt()
      true
    }

  private def start(work: Work): Unit =
    try threads.execute(work)
    catch { case _: java.util.concurrent.RejectedExecutionException if synchronized(closed) => }

  private def ended(work: Work): Unit = {
    val ready = synchronized {
      running -= work
      disposable -= work
      lingering -= work
      if (closed) Nil else admit()
    }
    ready.foreach(start)
  }

  /** One attempt's way through the threads. */
  final class Work private[WorkerThreads] (action: () => Unit) extends Runnable {
    // Guarded by the outer instance: the thread that runs this now, and an interrupt that came before it did.
    private var thread: Option[Thread] = None
    private var interruptedEarly = false

    /**
     * Says that the outcome no longer matters: if it waits it is dropped, if it runs it may be interrupted to give
     * way.
     */
    def disposeOf(): Unit = {
      val ready = WorkerThreads.this.synchronized {
        waiting -= this
        if (running.remove(this)) disposable += this
        if (closed) Nil else admit()
      }
      ready.foreach(WorkerThreads.this.start)
    }

    override def run(): Unit = {
      WorkerThreads.this.synchronized {
        thread = Some(Thread.currentThread())
        if (interruptedEarly) Thread.currentThread().interrupt()
      }
      try action()
      finally {
        // From here on the interrupt for this work can reach no other that uses the thread next.
        WorkerThreads.this.synchronized { thread = None }
        val _ = Thread.interrupted()
        ended(this)
      }
    }

    private[WorkerThreads] def interrupt(): Unit = thread match {
      case Some(busy) => busy.interrupt()
      case None => interruptedEarly = true
    }
  }
}
