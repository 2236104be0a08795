package org.apache.spark.sql

// Where later lines of Spark have the session of a process that has Spark in it.

package object classic {
  private[spark] type SparkSession = org.apache.spark.sql.SparkSession
  private[spark] val SparkSession: org.apache.spark.sql.SparkSession.type = org.apache.spark.sql.SparkSession
}
