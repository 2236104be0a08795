// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.concurrent.{ArrayBlockingQueue, CancellationException, Executors, TimeUnit}
import java.util.concurrent.atomic.AtomicBoolean

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.internal.SQLConf

/** Loads or reads several stores at once: each waits for some requests to storage, one after the other. */
private[tools] object InParallel extends Logging {

  /** Some work that passes its results on to the given function. */
  type Part[A] = (A => Unit) => Unit

  private val Threads = 8
  // Of each part whose turn has not come.
  private val WaitingResults = 2
  private val LookMs = 10L

  /**
   * Does several parts at once, each in a thread. `use` gets all results in this thread, in the order of the parts. After an error
   * no part continues, and `discard` gets the results that were not used.
   */
  def inOrder[A](parts: Seq[Part[A]])(discard: A => Unit)(use: A => Unit): Unit = {
    val isStopped = new AtomicBoolean
    val settings = SQLConf.get
    val begun = parts.map(new Worker(_, settings, isStopped, discard))
    val pool = Executors.newFixedThreadPool(
      Threads,
      work => {
        val thread = new Thread(work, "dstl-stores")
        thread.setDaemon(true)
        thread
      }
    )
    try {
      begun.foreach(pool.execute(_))
      begun.foreach(_.each(use))
    } finally {
      isStopped.set(true)
      pool.shutdown()
      // Not interrupted: a store is closed only once it was loaded. A part that waits for its turn ends at its next result.
      do begun.foreach(_.discardAll()) while (!pool.awaitTermination(LookMs, TimeUnit.MILLISECONDS))
      begun.foreach(_.discardAll())
    }
  }

  private final class Worker[A](part: Part[A], settings: SQLConf, isStopped: AtomicBoolean, discard: A => Unit)
      extends Runnable {
    // Results, then the end: without an error, or with it.
    private val results = new ArrayBlockingQueue[Either[Option[Throwable], A]](WaitingResults)

    override def run(): Unit = {
      val error =
        try {
          if (!isStopped.get) SQLConf.withExistingConf(settings)(part(take))
          None
        } catch { case error: Throwable => Some(error) }
      results.put(Left(error))
    }

    private def take(result: A): Unit = {
      results.put(Right(result))
      if (isStopped.get) throw new CancellationException
    }

    @tailrec def each(use: A => Unit): Unit = results.take() match {
      case Right(result) =>
        use(result)
        each(use)
      case Left(None) => ()
      case Left(Some(error)) => throw error
    }

    @tailrec def discardAll(): Unit = results.poll() match {
      case null => ()
      case result =>
        try result.foreach(discard)
        catch { case NonFatal(error) => logWarning("A result that is not needed could not be discarded", error) }
        discardAll()
    }
  }
}
