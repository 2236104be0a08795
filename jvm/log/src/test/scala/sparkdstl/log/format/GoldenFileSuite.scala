// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.nio.ByteBuffer
import java.util.zip.Inflater

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.error.DstlException
import sparkdstl.log.format.FormatSamples.{readData, readEntry}

/**
 * The bytes on disk stay stable. Compressed bytes may differ between zlib releases, so the index is compared
 * uncompressed, and everything else byte by byte.
 */
class GoldenFileSuite extends AnyFunSuite {

  GoldenFiles.all.foreach { golden =>
    val file = new Path(golden.name)

    golden.unsupported match {
      case None =>
        test(s"${golden.fileName} is read back as written") {
          assert(read(golden)._1 == golden.index)
        }
        test(s"${golden.fileName} holds the segments' bytes") {
          val content = stored(golden.fileName)
          val (index, logStart) = read(golden)
          for (entry <- index.entries; part <- entry.parts if part.file.isEmpty) {
            val from = (logStart + part.offset).toInt
            LogFileReader.verify(file, entry.key, part, content.slice(from, from + part.length))
          }
        }
      case Some(why) =>
        test(s"${golden.fileName} needs a later release and is not reported as damaged") {
          val error = intercept[DstlException](read(golden))
          assert(error.condition == "DSTL_UNSUPPORTED_FORMAT")
          assert(error.getMessage.contains(why))
        }
    }

    test(s"the writer writes the bytes of ${golden.fileName}") {
      assert(parse(golden.content) == parse(stored(golden.fileName)))
    }
  }

  private def read(golden: GoldenFiles.Golden): (LogFileIndex, Long) = {
    val content = stored(golden.fileName)
    if (golden.index.kind == LogFileKind.DataFile) (readData(content, golden.name), 0L)
    else readEntry(content, new Path(golden.name))
  }

  private case class Pieces(beforeIndex: Seq[Byte], body: Seq[Byte], trailer: Seq[Any])

  /** A file's pieces, parsed without the code under test; the trailer without its compression-dependent fields. */
  private def parse(content: Array[Byte]): Pieces = {
    val trailer = ByteBuffer.wrap(content, content.length - 68, 68)
    val (logLength, offset) = (trailer.getLong, trailer.getLong)
    val (storedLength, bodyLength) = (trailer.getInt, trailer.getInt)
    val body = new Array[Byte](bodyLength)
    val inflater = new Inflater
    val start = (content.length - logLength + offset).toInt
    inflater.setInput(content, start, storedLength)
    assert(inflater.inflate(body) == bodyLength)
    inflater.end()
    assert(logLength == offset + storedLength + 68)
    val rest = content.slice(content.length - 40, content.length - 12) ++ content.takeRight(8)
    Pieces(content.take(start).toSeq, body.toSeq, Seq(offset, bodyLength, rest.toSeq))
  }

  private def stored(name: String): Array[Byte] = {
    val in = getClass.getResourceAsStream(s"/golden/v2/$name")
    assert(in != null, s"$name is missing")
    try in.readAllBytes()
    finally in.close()
  }
}
