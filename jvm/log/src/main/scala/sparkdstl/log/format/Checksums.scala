// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32C

/** The checksums of the format: CRC32C (Castagnoli). */
object Checksums {

  private[log] def of(bytes: Array[Byte]): Int = of(bytes, 0, bytes.length)

  private[log] def of(bytes: Array[Byte], offset: Int, length: Int): Int = {
    val crc = new CRC32C
    crc.update(bytes, offset, length)
    crc.getValue.toInt
  }

  /**
   * The checksum of a part of a segment. It covers the segment's name and the bytes, so that it detects bytes of another object
   * or another place without further reads.
   */
  def ofPart(key: SegmentKey, bytes: Array[Byte]): Int = {
    val name = key.relativePath.getBytes(UTF_8)
    val crc = new CRC32C
    crc.update(ByteBuffer.allocate(4).putInt(0, name.length))
    crc.update(name)
    crc.update(bytes)
    crc.getValue.toInt
  }
}
