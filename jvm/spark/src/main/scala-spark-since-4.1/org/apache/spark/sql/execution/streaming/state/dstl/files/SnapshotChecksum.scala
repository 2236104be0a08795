package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32C

import org.apache.spark.sql.execution.streaming.checkpointing.{Checksum, ChecksumFileCreatorInfo}

/** The checksum file that Spark keeps beside a snapshot's zip. */
private[files] object SnapshotChecksum {

  /** Its content. */
  def of(zip: Array[Byte]): Array[Byte] = {
    val checksum = new CRC32C
    checksum.update(zip)
    Checksum("CRC32C", checksum.getValue.toInt, zip.length.toLong, 0L, ChecksumFileCreatorInfo("", "")).json()
      .getBytes(UTF_8)
  }
}
