package org.apache.spark.sql.execution.streaming.state.dstl.runtime

/** Which Spark this was built for. The Spark side uses classes that Spark changes between minor releases. */
private[dstl] object SparkVersion {
  val Supported = "4.2"

  /** @throws sparkdstl.log.error.DstlException unless `found` is a supported release of Spark */
  def check(found: String): Unit =
    if (found != Supported && !found.startsWith(Supported + "."))
      throw sparkdstl.log.error.ProtocolErrors.unsupportedSpark(found, s"$Supported.x")

  def check(): Unit = check(org.apache.spark.SPARK_VERSION)
}
