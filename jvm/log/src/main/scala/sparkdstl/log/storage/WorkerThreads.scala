// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.util.concurrent.Executor

import scala.collection.mutable
import scala.concurrent.{Future, Promise}
import scala.util.{Failure, Success, Try}

import sparkdstl.log.runtime.Cancellable

/**
 * Runs blocking attempts on a bounded number of threads. Cancelled attempts yield to others.
 *
 * At most `maxThreads` attempts count as running; more wait in order of arrival. If one waits, the attempt that was cancelled
 * first is interrupted and no longer counts, although it may linger: a blocked socket of S3A ignores interrupts. At most
 * [[WorkerThreads.LingeringPerThread]] times `maxThreads` attempts linger.
 *
 * @param threads starts every task at once or throws; owned by the caller
 * @param onInterrupt called for each interrupted attempt
 */
private[storage] final class WorkerThreads(initialThreads: Int, threads: Executor, onInterrupt: () => Unit) {
  require(initialThreads > 0, s"at least one thread is needed, not $initialThreads")

  // All guarded by this. Work is in at most one of the sets.
  private val waiting = mutable.LinkedHashSet.empty[Work[_]]
  private val running = mutable.LinkedHashSet.empty[Work[_]]
  private val disposable = mutable.LinkedHashSet.empty[Work[_]]
  private val lingering = mutable.LinkedHashSet.empty[Work[_]]
  private var maxThreads = initialThreads
  private var closed = false

  /** Runs `action` as soon as a thread is free. */
  def submit[T](action: () => T): Work[T] = {
    val work = new Work(action)
    val refused = synchronized {
      if (!closed) waiting += work
      closed
    }
    if (refused) work.fail(new AttemptNotMade("storage is closed")) else startWaiting()
    work
  }

  /** Raises the number of attempts that run at a time to at least `count`. */
  def ensureAtLeast(count: Int): Unit = {
    synchronized { maxThreads = math.max(maxThreads, count) }
    startWaiting()
  }

  def busy: Int = synchronized(running.size + disposable.size + lingering.size)

  /** Interrupts running work, drops waiting work, and refuses further work. */
  def close(): Unit = {
    val dropped = synchronized {
      closed = true
      val dropped = waiting.toVector
      waiting.clear()
      (running ++ disposable ++ lingering).foreach(_.interrupt())
      dropped
    }
    dropped.foreach(_.fail(new AttemptNotMade("storage was closed before a thread was free")))
  }

  /** Starts waiting work while threads are free. Work fails if its thread cannot be started. */
  private def startWaiting(): Unit =
    Iterator.continually(synchronized(admit())).takeWhile(_.isDefined).flatten.foreach { work =>
      try threads.execute(work)
      catch {
        case error: Throwable =>
          synchronized(leave(work))
          work.fail(new AttemptNotMade(s"no thread could be started: $error", error))
      }
    }

  /** Moves the oldest waiting work to running, if a thread is free. Lock held. */
  private def admit(): Option[Work[_]] =
    waiting.headOption.filter(_ => running.size + disposable.size < maxThreads || makeRoom()).map { work =>
      waiting -= work
      running += work
      work
    }

  /** Interrupts the attempt that was cancelled first. Lock held. */
  private def makeRoom(): Boolean =
    disposable.headOption.filter(_ => lingering.size < maxThreads * WorkerThreads.LingeringPerThread).exists { work =>
      disposable -= work
      lingering += work
      work.interrupt()
      onInterrupt()
      true
    }

  /** Lock held. */
  private def leave(work: Work[_]): Unit = Seq(running, disposable, lingering).foreach(_ -= work)

  final class Work[T] private[WorkerThreads] (action: () => T) extends Runnable with Cancellable {
    private val promise = Promise[T]()

    // Guarded by the outer instance: the running thread, and an interrupt before it ran.
    private var thread: Option[Thread] = None
    private var interruptedEarly = false

    def result: Future[T] = promise.future

    /** Whether it has a thread and was not cancelled. */
    def isRunning: Boolean = WorkerThreads.this.synchronized(running.contains(this))

    /** Drops waiting work. Running work may be interrupted when its thread is needed. */
    override def cancel(): Unit = {
      val dropped = WorkerThreads.this.synchronized {
        if (running.remove(this)) disposable += this
        waiting.remove(this)
      }
      if (dropped) fail(new AttemptNotMade("cancelled before a thread was free"))
      startWaiting()
    }

    override def run(): Unit = {
      WorkerThreads.this.synchronized {
        thread = Some(Thread.currentThread())
        if (interruptedEarly) Thread.currentThread().interrupt()
      }
      val outcome =
        try Success(action())
        catch { case error: Throwable => Failure(error) }
      // An interrupt for this work must not reach the next work on the thread.
      WorkerThreads.this.synchronized {
        thread = None
        leave(this)
      }
      Thread.interrupted(): Unit
      complete(outcome)
      startWaiting()
      // The handler of the process decides whether it can continue. Spark's ends an executor without memory.
      outcome match {
        case Failure(fatal: VirtualMachineError) => throw fatal
        case _ =>
      }
    }

    private[WorkerThreads] def interrupt(): Unit = thread match {
      case Some(busy) => busy.interrupt()
      case None => interruptedEarly = true
    }

    private[WorkerThreads] def fail(error: Throwable): Unit = complete(Failure(error))

    private def complete(outcome: Try[T]): Unit = promise.tryComplete(outcome): Unit
  }
}

private[storage] object WorkerThreads {

  /**
   * S3A ends a connection without an answer after 200 s, and a request replaces an attempt every 30 s at most. With this limit,
   * dead connections alone never block other work.
   */
  val LingeringPerThread = 8
}
