// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.spark.sql.SparkSession

/** The state in a checkpoint, as another application reads it. */
object StoredStateShims {

  /** @param options those of the state data source */
  def read(session: SparkSession, checkpoint: String, options: Map[String, String]): Seq[String] =
    session.read.format("statestore").options(options).load(checkpoint).collect().map(_.json).sorted.toSeq
}
