// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql

// Aliases in a package of Spark 4.0.

package object classic {
  private[spark] type SparkSession = org.apache.spark.sql.SparkSession
  private[spark] val SparkSession: org.apache.spark.sql.SparkSession.type = org.apache.spark.sql.SparkSession
}
