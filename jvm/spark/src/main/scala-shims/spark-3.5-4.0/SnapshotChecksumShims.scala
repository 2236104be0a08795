// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

/** The checksum file of a snapshot's zip: these lines of Spark have none. */
private[dstl] object SnapshotChecksumShims {
  val of: Array[Byte] => Option[Array[Byte]] = _ => None
}
