// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32C

import org.apache.spark.sql.execution.streaming.checkpointing.{Checksum, ChecksumFileCreatorInfo}

/** The checksum file of a snapshot's zip. Spark warns without it. */
private[dstl] object SnapshotChecksumShims {
  def of(zip: Array[Byte]): Option[Array[Byte]] = {
    val checksum = new CRC32C
    checksum.update(zip)
    val info = ChecksumFileCreatorInfo("", "")
    Some(Checksum("CRC32C", checksum.getValue.toInt, zip.length.toLong, 0L, info).json().getBytes(UTF_8))
  }
}
