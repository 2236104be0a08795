package org.apache.spark.sql.execution.streaming.state.dstl

/**
 * What is made when it is first needed, once, by whoever comes first; who comes meanwhile waits. If that fails, the next
 * one tries again.
 */
private[dstl] final class OnFirstUse[T](make: () => T) {
  @volatile private var isMade = false

  lazy val value: T = {
    val made = make()
    isMade = true
    made
  }

  /** For those who need it only if somebody else does. */
  def ifMade: Option[T] = if (isMade) Some(value) else None
}
