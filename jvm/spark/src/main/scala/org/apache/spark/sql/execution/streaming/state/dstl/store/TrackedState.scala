// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import sparkdstl.log.error.Causes
import sparkdstl.log.read.StoreLoad
import sparkdstl.log.worker.{LocalStore, RunWorker, StateAttempts}

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.state.dstl.files.{LoadErrors, LoggedStore}
import org.apache.spark.sql.execution.streaming.state.dstl.metrics.LogMetrics
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.ProcessResources

/**
 * The local state of a store, with the task attempt that made it: state that was not committed is loaded again before further
 * changes. All lines of Spark share this; the methods that load and commit a database differ.
 */
private[store] trait TrackedState extends LocalStore { this: Logging =>
  private[store] final val attempts = new StateAttempts

  // Guarded by Spark's lock of the store: the load under way.
  private var loading = Option.empty[StoreLoad]

  // Set by the constructor: the worker that knows the store.
  private var registered = Option.empty[RunWorker]

  protected def resources: ProcessResources

  /** The store in the log; None if its directory is not in a checkpoint. */
  protected def store: Option[LoggedStore]

  override def drop(attempt: Long): Unit = attempts.drop(attempt)

  /**
   * Loads a version, from the local state if that may be used. The calling thread has Spark's lock of the store.
   *
   * @param loggingId the store's name in Spark's logs
   * @param isThere   whether the local state is that version
   * @param forget    makes Spark's database forget its local state
   * @param load      makes Spark load the version
   */
  protected final def loadTracked[T](loggingId: String, version: Long, isThere: => Boolean)(
      forget: => Unit
  )(load: StoreLoad => T): T = {
    val base = if (isThere) attempts.of(version) else None
    val isDropped = base.exists(attempts.isDropped)
    if (isDropped)
      logInfo(s"Version $version was left by task attempt ${base.get}, which was not committed: it is loaded again")
    val isLocal = isThere && !isDropped
    // A load that fails early must not leave local state without the attempt that made it.
    if (!isLocal) forget
    val kept = if (isLocal) base else None
    if (kept.isEmpty) attempts.forgetFrom(version)
    val current = new StoreLoad(kept, Option.unless(isLocal)(resources.recoveryProgress.begin(loggingId, version)))
    var isLoaded = false
    try {
      loading = Some(current)
      val loaded = LoadErrors.inFront(store.map(_.run))(StoreLoad.during(current)(load(current)))
      isLoaded = true
      Option(TaskContext.get()).foreach(LogMetrics.loaded(_, current.segments, current.bytes, current.records))
      loaded
    } finally {
      loading = None
      current.progress.foreach(_.end(isLoaded))
      resources.replayMetrics.replayed(current.records)
    }
  }

  /** Called at each change of the store: during a load the changes are the replayed records. */
  protected final def noteChange(): Unit = loading.foreach(_.records += 1)

  /** Records the task attempt of the calling thread as the one that made the version; None outside of tasks. */
  protected final def remember(version: Long): Option[Long] = {
    val attempt = Option(TaskContext.get()).map(_.taskAttemptId())
    attempt.foreach(attempts.remember(version, _))
    attempt
  }

  /** Frees what the database holds. */
  def close(): Unit

  /**
   * Registers for the driver's messages, which drop attempts that were not committed. If that fails, nothing refers to the
   * database yet, which is closed.
   */
  protected final def register(): Unit = Causes.cleaningUp(close()) {
    registered = store.flatMap(_.worker)
    for (of <- store; worker <- registered) worker.register(of.directory, this)
  }

  protected final def unregister(): Unit =
    for (of <- store; worker <- registered) worker.unregister(of.directory, this)
}
