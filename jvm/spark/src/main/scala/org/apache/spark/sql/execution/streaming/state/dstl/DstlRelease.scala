package org.apache.spark.sql.execution.streaming.state.dstl

import sparkdstl.log.SoftwareVersion

/**
 * What a client asks to learn whether Spark runs with this jar: over py4j, or where there is but SQL, with
 * `SELECT java_method('<name of this object>', 'version')`.
 */
object DstlRelease {

  /** The jar's version, such as `0.1.0`. */
  def version(): String = SoftwareVersion.Current
}
