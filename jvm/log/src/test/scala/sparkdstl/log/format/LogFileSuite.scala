// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import sparkdstl.log.error.{DamagedLogException, DstlException}
import sparkdstl.log.format.FormatSamples._
import sparkdstl.log.storage.ObjectTail

/** A log is read back as written, and any other bytes are an error. */
class LogFileSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 300, sizeRange = 30)

  test("every data file is read back as written, and its parts pass verification") {
    forAll(dataFile) { sample =>
      val index = readData(sample.content, sample.index.name.get)
      assert(index == sample.index)
      for (entry <- index.entries; part <- entry.parts) {
        val from = part.offset.toInt
        LogFileReader.verify(file, entry.key, part, sample.content.slice(from, from + part.length))
      }
    }
  }

  test("the same segments can be finished under several names without a copy") {
    val log = new LogFileWriter(LogFileKind.DataFile)
    val bytes = ascii("changes")
    val entry = SegmentEntry(key(), 1, Vector(log.append(key(), bytes)))
    Seq("a", "b").foreach { instance =>
      val name = LogLayout.dataFile(1, someRun, "1", 0, instance)
      val payload = log.finish(dataIndex(entry).copy(name = Some(name)))
      assert(payload.parts(1) eq bytes)
      assert(readData(payload.toArray, name).entries == Vector(entry))
    }
  }

  test("neither a commit entry's log is read as a data file, nor a data file as a commit entry's log") {
    damaged(readData(small.content))
    damaged(readEntry(small.others(dataPath)))
    damaged(CommitEntry.entryId(file, whole(small.others(dataPath))))
  }

  test("a data file that is cut or extended at either end is reported as damage") {
    val content = small.others(dataPath)
    val cut = content.indices.map(content.take) ++ (1 until LogFile.HeaderLength).map(content.drop)
    val extended = Seq(ascii("x") ++ content, content :+ 0.toByte)
    (cut ++ extended).foreach(changed => withClue(s"${changed.length} bytes: ")(damaged(readData(changed))))
    for (length <- 0 until LogFile.TrailerLength)
      damaged(DataFileReader.read(file, dataPath, ObjectTail(content.takeRight(length), content.length.toLong)))
  }

  test("an entry's log whose beginning is missing is reported as damage") {
    (1 until LogFile.HeaderLength).foreach(missing => damaged(readEntry(small.content.drop(missing))))
  }

  test("every single flipped bit, in the log of an entry or in a data file that it names, is reported as damage") {
    val Sample(log, _, others) = small
    val content = ascii("v1\n{}\n{\"dstl\":2}\n") ++ log
    val start = content.length - log.length
    assert(readAll(content, others)._2 == Vector("firstsecond", "third", "a large segment"))
    for (bit <- start * 8 until content.length * 8)
      withClue(s"bit $bit of the entry: ")(damaged(readAll(flip(content, bit), others)))
    val (path, data) = others.head
    val segment = LogFile.HeaderLength until LogFile.HeaderLength + "a large segment".length
    for (bit <- segment.start * 8 until segment.end * 8)
      withClue(s"bit $bit of the data file: ")(damaged(readAll(content, Map(path -> flip(data, bit)))))
    for (bit <- 0 until data.length * 8 if !segment.contains(bit / 8))
      withClue(s"bit $bit of the data file, read by itself: ")(damaged(readData(flip(data, bit))))
  }

  test("a damage report names the file, the offset and, for a segment, store and version") {
    val Sample(content, index, _) = small
    val part = index.entries(1).parts.head
    val error = intercept[DamagedLogException](readAll(flip(content, part.offset.toInt * 8), Map.empty))
    assert(error.parameters("file") == file.toString)
    assert(error.parameters("offset") == part.offset.toString)
    assert(error.parameters("segment") == s"0/1/8_$someRun.changelog")
    assert(error.parameters("version") == "8")
    assert(error.getMessage.contains(s"0/1/8_$someRun.changelog"))
  }

  test("valid bytes of a segment with another store, partition, version, id or kind are damage") {
    val bytes = ascii("the same bytes")
    val part = SegmentPart(None, 24, bytes.length, Checksums.ofPart(key(), bytes))
    LogFileReader.verify(file, key(), part, bytes)
    val ofStores = Seq(key().copy(operator = 1), key(partition = 1), key(storeName = "a"))
    (ofStores ++ Seq(key(version = 9), key(id = Some("a")), key(kind = SegmentKind.Checksum)))
      .foreach(other => damaged(LogFileReader.verify(file, other, part, bytes)))
  }

  test("a checksum separates a segment's name from its bytes") {
    val (changelog, checksum) = (key(), key(kind = SegmentKind.Checksum))
    assert(Checksums.ofPart(changelog, ascii(".crc")) != Checksums.ofPart(checksum, Array.empty))
  }

  test("a part of another length is damage even if its checksum matches") {
    val bytes = ascii("bytes")
    val part = SegmentPart(None, 24, bytes.length + 1, Checksums.ofPart(key(), bytes))
    intercept[DamagedLogException](LogFileReader.verify(file, key(), part, bytes))
  }

  test("a later format version, unknown required flags and unknown kinds are refused by name, not called damage") {
    def refused(trailer: LogTrailer, why: String): Assertion = {
      val error = intercept[DstlException](readEntry(new Array[Byte](24) ++ trailer.bytes))
      assert(error.condition == "DSTL_UNSUPPORTED_FORMAT")
      assert(error.parameters("found").contains(why))
    }
    val trailer = LogTrailer(92, 24, 0, 0, 0, someEntry, 1)
    Seq(3, 77, 65535).foreach(version => refused(trailer.copy(version = version), version.toString))
    Seq(1, 4, 0x80000000).foreach(flags => refused(trailer.copy(requiredFlags = flags), f"$flags%08x"))
    refused(trailer.copy(kindCode = 9), "kind 9")
  }

  test("earlier format versions are damage") {
    Seq(0, 1).foreach { version =>
      val trailer = LogTrailer(92, 24, 0, 0, 0, someEntry, 1, version)
      val error = intercept[DamagedLogException](readEntry(new Array[Byte](24) ++ trailer.bytes))
      assert(error.parameters("offset") == "24", "where the trailer begins")
    }
  }

  test("a file whose header and trailer disagree is damaged") {
    import LogFileWriter.header
    Seq(header(2), header(1, version = 3), header(1, requiredFlags = 1), header(1, optionalFlags = 1))
      .foreach(other => damaged(readEntry(other ++ small.content.drop(LogFile.HeaderLength))))
  }

  test("a data file's index does not end an entry's log") {
    intercept[IllegalArgumentException](new LogFileWriter(LogFileKind.Entry).finish(dataIndex()))
  }

  test("a segment of a batch with 64 stores takes at most 14 bytes of the index") {
    val random = new scala.util.Random(1)
    def length(stores: Int): Int = {
      val log = new LogFileWriter(LogFileKind.Entry)
      val entries = (0 until stores).map { partition =>
        val bytes = randomBytes(random, 400 + random.nextInt(3000))
        SegmentEntry(key(partition = partition), 5000L + random.nextInt(64), Vector(log.append(key(partition), bytes)))
      }
      log.finish(entryIndex(entries: _*)).parts.takeRight(2).head.length
    }
    val each = (length(64) - length(0)) / 64.0
    info(f"$each%.1f bytes a segment, ${length(0)} bytes without any")
    assert(each <= 14)
  }

  private def damaged(read: => Any): Assertion = {
    intercept[DamagedLogException](read)
    succeed
  }

  private def flip(content: Array[Byte], bit: Int): Array[Byte] = {
    val flipped = content.clone()
    flipped(bit / 8) = (flipped(bit / 8) ^ (1 << bit % 8)).toByte
    flipped
  }
}
