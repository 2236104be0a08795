package sparkdstl.log.format

import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import sparkdstl.log.error.{DamagedLogException, DstlException}
import sparkdstl.log.format.FormatSamples._

/** What a log file promises as a whole: what was written is read, and anything else is an error. */
class LogFileSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 300, sizeRange = 30)

  test("any index is read as it was written, and its own parts' bytes verify") {
    forAll(sample) { sample =>
      val index = LogFileReader.readIndex(file, sample.content)
      assert(index == sample.index)
      for (entry <- index.entries; part <- entry.parts if part.file.isEmpty) {
        val from = part.offset.toInt
        LogFileReader.verify(file, entry.key, part, sample.content.slice(from, from + part.length))
      }
    }
  }

  test("a tail of any size that holds the index reads like the whole file") {
    val content = small.content
    val whole = LogFileReader.readIndex(file, content)
    val least = content.length - LogFileReader.readTrailer(file, content, content.length.toLong).indexOffset.toInt
    for (size <- least to content.length) {
      val tail = content.takeRight(size)
      val trailer = LogFileReader.readTrailer(file, tail, content.length.toLong)
      val start = size - (content.length - trailer.indexOffset.toInt)
      val stored = tail.slice(start, start + trailer.indexLength)
      assert(LogFileReader.decodeIndex(file, trailer, stored) == whole)
    }
  }

  test("a header can be checked when only its bytes are at hand") {
    LogFileReader.checkHeader(file, small.content.take(LogFile.HeaderLength))
  }

  test("the same input gives the same bytes") {
    assert(small.content.sameElements(small.content))
  }

  test("every truncation is reported as damage") {
    val content = small.content
    for (length <- 0 until content.length)
      withClue(s"the first $length bytes: ") {
        intercept[DamagedLogException](LogFileReader.readIndex(file, content.take(length)))
      }
  }

  test("a tail that is shorter than a trailer is reported as damage") {
    for (length <- 0 until LogFile.TrailerLength) {
      val tail = small.content.takeRight(length)
      intercept[DamagedLogException](LogFileReader.readTrailer(file, tail, length.toLong))
    }
  }

  test("bytes after the trailer are reported as damage") {
    intercept[DamagedLogException](LogFileReader.readIndex(file, small.content :+ 0.toByte))
  }

  test("a file whose beginning is missing is reported as damage, though its end is whole") {
    for (missing <- 1 until LogFile.HeaderLength)
      intercept[DamagedLogException](LogFileReader.readIndex(file, small.content.drop(missing)))
  }

  test("every single flipped bit, in the batch log or in a data file that it names, is reported as damage") {
    val Sample(content, _, others) = small
    assert(readAll(content, others)._2 == Vector("firstsecond", "third", "a large segment"))
    for (bit <- 0 until content.length * 8)
      withClue(s"bit $bit of the batch log: ") {
        intercept[DamagedLogException](readAll(flip(content, bit), others))
      }
    val (path, data) = others.head
    val segment = LogFile.HeaderLength until LogFile.HeaderLength + "a large segment".length
    for (bit <- segment.start * 8 until segment.end * 8)
      withClue(s"bit $bit of the data file: ") {
        intercept[DamagedLogException](readAll(content, Map(path -> flip(data, bit))))
      }
    for (bit <- 0 until data.length * 8)
      withClue(s"bit $bit of the data file, read by itself: ") {
        intercept[DamagedLogException](readAll(flip(data, bit), Map.empty))
      }
  }

  test("damage names the file, the offset and, for a segment, store and version") {
    val Sample(content, index, _) = small
    val part = index.entries(1).parts.head
    val flipped = flip(content, part.offset.toInt * 8)
    val error = intercept[DamagedLogException](readAll(flipped, Map.empty))
    assert(error.parameters("file") == file.toString)
    assert(error.parameters("offset") == part.offset.toString)
    assert(error.parameters("segment") == s"0/1/8_$someRun.changelog")
    assert(error.parameters("version") == "8")
    assert(error.getMessage.contains(s"0/1/8_$someRun.changelog"))
  }

  test("a part of another length is damage even if its checksum were right") {
    val bytes = ascii("bytes")
    val part = SegmentPart(None, 16, bytes.length + 1, LogFileWriter.crc(bytes))
    intercept[DamagedLogException](LogFileReader.verify(file, key(), part, bytes))
  }

  test("a later format version is refused by name, not called damage") {
    for (version <- Seq(2, 77, 65535)) {
      val content = small.content
      val header = LogFileWriter.header(LogFileKind.BatchLog, version)
      val error = intercept[DstlException](LogFileReader.checkHeader(file, header ++ content.drop(header.length)))
      assert(error.condition == "DSTL_UNSUPPORTED_FORMAT")
      assert(error.parameters("found") == version.toString)
      val trailer = LogFileWriter.trailer(LogFileKind.BatchLog, version, 16, Array.empty, 0)
      val atEnd = intercept[DstlException](LogFileReader.readTrailer(file, trailer, 52))
      assert(atEnd.condition == "DSTL_UNSUPPORTED_FORMAT")
    }
  }

  test("format version 0 does not exist") {
    intercept[DamagedLogException](LogFileReader.checkHeader(file, LogFileWriter.header(LogFileKind.BatchLog, 0)))
    val trailer = LogFileWriter.trailer(LogFileKind.BatchLog, 0, 16, Array.empty, 0)
    val error = intercept[DamagedLogException](LogFileReader.readTrailer(file, trailer, 52))
    assert(error.parameters("offset") == "16", "where the trailer begins")
  }

  test("a file whose header and trailer disagree about its kind is damaged") {
    val content = LogFileWriter.header(LogFileKind.DataFile, 1) ++ small.content.drop(LogFile.HeaderLength)
    intercept[DamagedLogException](LogFileReader.readIndex(file, content))
  }

  test("a data file's index does not end a batch log") {
    intercept[IllegalArgumentException](new LogFileWriter(LogFileKind.BatchLog).finish(dataFile()))
  }

  private def flip(content: Array[Byte], bit: Int): Array[Byte] = {
    val flipped = content.clone()
    flipped(bit / 8) = (flipped(bit / 8) ^ (1 << bit % 8)).toByte
    flipped
  }
}
