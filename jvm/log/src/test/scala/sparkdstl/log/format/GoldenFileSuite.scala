package sparkdstl.log.format

import java.nio.ByteBuffer
import java.util.zip.Inflater

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

/**
 * The bytes on disk stay what they are. Compressed bytes may differ between zlib releases, so the index is compared
 * unpacked, and everything else byte by byte.
 */
class GoldenFileSuite extends AnyFunSuite {

  GoldenFiles.all.foreach { golden =>
    val file = new Path(golden.name)

    test(s"${golden.name} is read as what was written into it") {
      assert(LogFileReader.readIndex(file, stored(golden.name)) == golden.index)
    }

    test(s"${golden.name} holds the segments' bytes") {
      val content = stored(golden.name)
      for (entry <- golden.index.entries; part <- entry.parts if part.file.isEmpty)
        LogFileReader.verify(file, entry.key, part, content.slice(part.offset.toInt, part.offset.toInt + part.length))
      assert(content.slice(16, 16 + golden.segments.length).sameElements(golden.segments))
    }

    test(s"the writer still writes ${golden.name}") {
      val (old, now) = (parse(stored(golden.name)), parse(golden.content))
      assert(now.beforeIndex == old.beforeIndex)
      assert(now.body == old.body)
      assert(now.trailer == old.trailer)
      assert(golden.content.length == stored(golden.name).length - old.storedLength + now.storedLength)
    }
  }

  private case class Pieces(beforeIndex: Seq[Byte], body: Seq[Byte], storedLength: Int, trailer: Seq[Any])

  /** A file's pieces, taken apart without the code under test; the trailer without what depends on the compression. */
  private def parse(content: Array[Byte]): Pieces = {
    val trailer = ByteBuffer.wrap(content, content.length - 36, 36)
    val (offset, storedLength, bodyLength) = (trailer.getLong.toInt, trailer.getInt, trailer.getInt)
    trailer.getInt: Unit
    val (version, kind) = (trailer.getShort, trailer.getShort)
    trailer.getInt: Unit
    val body = new Array[Byte](bodyLength)
    val inflater = new Inflater
    inflater.setInput(content, offset, storedLength)
    assert(inflater.inflate(body) == bodyLength)
    inflater.end()
    val magic = content.takeRight(8).toSeq
    Pieces(content.take(offset).toSeq, body.toSeq, storedLength, Seq(offset, bodyLength, version, kind, magic))
  }

  private def stored(name: String): Array[Byte] = {
    val in = getClass.getResourceAsStream(s"/golden/v1/$name")
    assert(in != null, s"$name is missing")
    try in.readAllBytes()
    finally in.close()
  }
}
