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
   * Of a part of the segment `key`: it covers the segment's name as well as the bytes. So a range of an object that is
   * not the one its name says, or that lies elsewhere in it, is found out without reading anything else of it.
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
