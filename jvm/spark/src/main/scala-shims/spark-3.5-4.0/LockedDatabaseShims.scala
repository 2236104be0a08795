// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.lang.reflect.InvocationTargetException

import scala.collection.mutable

import org.apache.commons.lang3.reflect.FieldUtils

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state.RocksDB

/**
 * A database whose load and commit take and release Spark's lock of the store themselves. In later lines the provider holds the lock
 * around both.
 */
private[store] trait LockedDatabaseShims extends RocksDB {

  // Guarded by this: the newest attempts that have committed, at most LockedDatabaseShims.Remembered.
  private val committed = mutable.LinkedHashSet.empty[Long]

  /** The arguments of Spark's method that takes the lock. */
  protected def lockArguments: Seq[AnyRef]

  /** Takes Spark's lock of the store, unless the calling thread has it. Other attempts that load the store wait. */
  protected final def lock(): Unit =
    try LockedDatabaseShims.acquire.invoke(this, lockArguments: _*): Unit
    catch { case error: InvocationTargetException => throw error.getCause }

  /** Rolls back, and keeps the lock, which Spark releases. */
  protected final def rollbackLocked(): Unit = LockedDatabaseShims.monitor.get(this).synchronized {
    rollback()
    lock()
  }

  /** Notes that the attempt of the calling thread has committed. */
  protected final def noteCommitted(): Unit = LockedDatabaseShims.attempt.foreach { attempt =>
    synchronized {
      committed += attempt
      if (committed.size > LockedDatabaseShims.Remembered) committed -= committed.head: Unit
    }
  }

  /**
   * Keeps what the attempt of the calling thread has committed. A task of an aggregation opens its store twice, to read and to
   * change it, and aborts the first when it completes: Spark would roll back the commit, or what another attempt does meanwhile.
   */
  override def rollback(): Unit = {
    val isKept = Option(TaskContext.get()).exists(_.isCompleted()) &&
      LockedDatabaseShims.attempt.exists(attempt => synchronized(committed(attempt)))
    if (!isKept) super.rollback()
  }
}

private object LockedDatabaseShims {
  private val Remembered = 16

  /** Spark's monitor, under which it takes and releases the lock. */
  private val monitor = FieldUtils.getDeclaredField(classOf[RocksDB], "acquireLock", true)

  private val acquire = {
    val method = classOf[RocksDB].getDeclaredMethods.find(_.getName == "acquire").get
    method.setAccessible(true)
    method
  }

  private def attempt: Option[Long] = Option(TaskContext.get()).map(_.taskAttemptId())
}
