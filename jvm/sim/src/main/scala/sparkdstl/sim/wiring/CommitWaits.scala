// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.wiring

import sparkdstl.log.error.DstlException
import sparkdstl.log.runtime.Timer

/**
 * Checks that a commit with a timeout has not waited in vain: for uploads of lost executors, or
 * after the end of its run.
 */
private[wiring] final class CommitWaits(timer: Timer, violate: String => Unit) {
  import CommitWaits.PromptNanos

  private var executorOf = Map.empty[Long, String]
  private var lostAt = Map.empty[String, Long]
  private var endedAt = Option.empty[Long]

  def hasSealed(attempt: Long, executor: String): Unit = executorOf += attempt -> executor

  def isLost(executor: String): Unit = lostAt += executor -> timer.nowNanos

  def runEnds(): Unit = endedAt = Some(timer.nowNanos)

  /** @param reported the attempts whose results Spark has taken for the batch */
  def hasFailed(error: Throwable, reported: Seq[Long]): Unit = error match {
    case late: DstlException if late.condition == "DSTL_COMMIT_TIMEOUT" =>
      val holders = reported.flatMap(executorOf.get)
      if (isLongAgo(endedAt)) violate(s"a commit waits although its run has ended: $late")
      if (holders.nonEmpty && holders.forall(of => isLongAgo(lostAt.get(of))))
        violate(s"a commit waits for executors that are lost: $late")
    case _ =>
  }

  private def isLongAgo(since: Option[Long]): Boolean = since.exists(timer.nowNanos - _ > PromptNanos)
}

private object CommitWaits {
  private val PromptNanos = 1000000000L
}
