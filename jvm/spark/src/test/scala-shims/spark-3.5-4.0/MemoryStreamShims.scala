// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.runtime

import org.apache.spark.sql.{Encoder, SparkSession}
import org.apache.spark.sql.classic

/** Created with a session, as in later lines of Spark. */
object MemoryStream {
  def apply[A](encoder: Encoder[A], session: SparkSession): MemoryStream[A] =
    org.apache.spark.sql.execution.streaming.MemoryStream[A](
      encoder,
      session.asInstanceOf[classic.SparkSession].sqlContext
    )
}
