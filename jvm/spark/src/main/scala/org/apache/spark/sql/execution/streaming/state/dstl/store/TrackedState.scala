package org.apache.spark.sql.execution.streaming.state.dstl.store

import sparkdstl.log.worker.{LocalStore, StateAttempts}

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.files.CurrentLoad
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun

/**
 * The local state of a store that remembers whose changes it holds: what was not committed is never built on. It is the same
 * for all lines of Spark, whatever their databases are loaded and committed with.
 */
private[store] trait TrackedState extends LocalStore { this: Logging =>
  protected final val attempts = new StateAttempts
  protected final val replay = new CountedReplay

  /** The log of the query's run. */
  protected def run: () => Option[WorkedRun]

  /** As the log names the store. */
  protected def storeDirectory: Option[String]

  override def drop(attempt: Long): Unit = attempts.drop(attempt)

  /**
   * Loads a version, from what is there if that may be built on.
   *
   * @param loggingId names the store in logs
   * @param isThere   whether what is there is that version
   * @param forget    makes Spark's database forget what is there
   * @param load      has Spark load it, and is told whether it is there
   */
  protected final def loadTracked[T](loggingId: String, version: Long, isThere: => Boolean)(
      forget: => Unit
  )(load: Boolean => T): T = {
    val base = if (isThere) attempts.of(version) else None
    if (base.exists(attempts.isDropped)) {
      logInfo(s"Version $version was left by task attempt ${base.get}, which does not count: it is loaded again")
      forget
    }
    val isLocal = isThere
    val kept = if (isLocal) base else None
    if (kept.isEmpty) attempts.forgetFrom(version)
    LoadErrors.inFront(BaseOfChanges.during(kept) {
      if (isLocal) load(true)
      else CurrentLoad.during(DstlEnvironment.get.recoveryProgress, loggingId, version)(replay.during(load(false)))
    })
  }

  /** Notes what the calling thread has just committed, and returns the task attempt that it did so for, if it is one. */
  protected final def remember(version: Long): Option[Long] = {
    val attempt = Option(TaskContext.get()).map(_.taskAttemptId())
    attempt.foreach(attempts.remember(version, _))
    attempt
  }

  /** Has the log tell it of attempts that do not count, until it is unregistered. */
  protected final def register(): Unit =
    for (worked <- run(); worker <- worked.worker; store <- storeDirectory) worker.register(store, this)

  protected final def unregister(): Unit =
    for (worked <- run(); worker <- worked.worker; store <- storeDirectory) worker.unregister(store, this)
}
