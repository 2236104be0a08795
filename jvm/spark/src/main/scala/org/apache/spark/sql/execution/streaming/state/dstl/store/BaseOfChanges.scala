package org.apache.spark.sql.execution.streaming.state.dstl.store

/**
 * The task attempt that left the local state which the current thread is about to change: known while a store is loaded, which is
 * when Spark opens its changelog.
 */
private[dstl] object BaseOfChanges {
  private val base = new ThreadLocal[Option[Long]]

  def get: Option[Long] = Option(base.get).flatten

  def during[T](attempt: Option[Long])(body: => T): T = {
    base.set(attempt)
    try body
    finally base.remove()
  }
}
