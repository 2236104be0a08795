// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming

/** In the package to which Spark 4.2 moved this class. */
package object sources {
  type LowLatencyMemoryStream[A] = org.apache.spark.sql.execution.streaming.LowLatencyMemoryStream[A]
}
