package org.apache.spark.sql.execution.streaming.state.dstl.files

/** The checksum file that later lines of Spark keep beside a snapshot's zip: this one never opens any. */
private[files] object SnapshotChecksum {

  /** Its content. */
  def of(zip: Array[Byte]): Array[Byte] =
    throw new UnsupportedOperationException(
      s"There are no checksum files in this Spark, for a zip of ${zip.length} bytes"
    )
}
