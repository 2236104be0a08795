// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.worker

import java.io.OutputStream

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * A stream that ends once, when it is closed or cancelled. Later calls have no effect: Spark closes the compressing stream around
 * this one after it has cancelled.
 */
private[dstl] final class EndingStream(to: OutputStream)(complete: => Unit)(abort: => Unit)
    extends CancellableFSDataOutputStream(to) {
  private var ended = false

  override def close(): Unit = end(complete)

  override def cancel(): Unit = end(abort)

  private def end(how: => Unit): Unit = synchronized {
    if (!ended) {
      ended = true
      how
    }
  }
}

private[dstl] object EndingStream {

  /** A stream that discards its content, for a file that the log does not need. */
  def discarding(): EndingStream = new EndingStream(OutputStream.nullOutputStream())(())(())

  /** A stream whose content can't be kept: closing it fails, and cancelling it does not. */
  def failing(error: => Exception): EndingStream = new EndingStream(OutputStream.nullOutputStream())(throw error)(())
}
