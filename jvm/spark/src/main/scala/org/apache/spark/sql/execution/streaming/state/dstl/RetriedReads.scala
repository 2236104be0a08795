package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.concurrent.TimeoutException

import org.apache.hadoop.fs.Path

import sparkdstl.log.retry.AttemptsFailed

/**
 * Questions about single objects. Spark asks whether `offsets/N` and `commits/N` exist before it creates them: without hedges
 * these two meet the slow tail of storage in every batch.
 */
private[dstl] final class RetriedReads(requests: RetriedRequests) {

  /** Whether there is something at `path`, as `ask` finds out. Fails as the last attempt of `ask` did. */
  def exists(path: Path)(ask: () => Boolean): Boolean =
    try requests.run(s"asking for $path")(ask)
    catch {
      case _: TimeoutException => throw DstlErrors.readTimedOut(path, requests.timeoutMs)
      case e: AttemptsFailed => throw e.getCause
    }
}
