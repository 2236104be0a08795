// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.io.ByteArrayOutputStream
import java.lang.management.ManagementFactory
import java.util.UUID
import java.util.zip.DeflaterOutputStream

import scala.util.Using

import com.sun.management.ThreadMXBean
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.error.{DamagedLogException, DstlException}
import sparkdstl.log.format.FormatSamples._

/**
 * Logs with valid checksums whose content no writer of this project produces. Readers refuse them before
 * they allocate much memory.
 */
class HostileIndexSuite extends AnyFunSuite {
  import IndexCodec._

  private val MiB = 1024L * 1024

  /** The sections of an index; each can be replaced, left out, or added to. */
  private val sections: Map[Int, ByteEncoder => Unit] = Map(
    WriterSection -> { out =>
      out.text("some software")
      out.uuid(someRun)
      out.number(1)
      out.text("host")
      out.text("application")
    },
    previous(0),
    FilesSection -> { out => out.number(0) },
    StoresSection -> { out => out.number(0) },
    SegmentsSection -> { out => out.number(0) }
  )

  private def body(changes: (Int, ByteEncoder => Unit)*): Array[Byte] = bodyOf(sections ++ changes)

  /** An entry section with a count of previous entries and their ids. */
  private def previous(count: Long, named: UUID*): (Int, ByteEncoder => Unit) = EntrySection -> { out =>
    out.number(batch)
    out.uuid(someEntry)
    out.number(count)
    named.foreach(out.uuid)
  }

  private def bodyOf(sections: Map[Int, ByteEncoder => Unit]): Array[Byte] = {
    val out = new ByteEncoder
    sections.toSeq.sortBy(_._1).foreach { case (tag, write) => out.section(tag)(write) }
    out.result
  }

  test("the unchanged index is valid") {
    assert(readEntry(fileOf(LogFileKind.Entry, body()))._1.software == "some software")
    assert(readEntry(fileOf(LogFileKind.Entry, oneEntry()))._1.entries.size == 1)
  }

  for ((what, count) <- Seq("the largest number" -> Long.MaxValue, "two billion" -> 2000000000L)) {
    for ((name, tag) <- Seq("data files" -> FilesSection, "stores" -> StoresSection, "segments" -> SegmentsSection))
      test(s"a false count of $name is refused at once: $what") {
        refused("announced")(body(tag -> (_.number(count))))
      }
    test(s"a false count of parts is refused at once: $what") {
      refused("announced")(oneEntry(partCount = count))
    }
    test(s"a false count of previous entries is refused at once: $what") {
      refused("announced")(body(previous(count)))
    }
  }

  test("a text or a section longer than the index is refused before it is read") {
    refused("were expected")(body(WriterSection -> (_.number(Int.MaxValue.toLong))))
    refused("is allowed")(body(WriterSection -> (_.number(Long.MaxValue))))
    Seq(Int.MaxValue.toLong -> "were expected", Long.MaxValue -> "is allowed").foreach { case (length, why) =>
      val out = new ByteEncoder
      out.number(2)
      out.number(length)
      refused(why)(out.result)
    }
  }

  test("a number of more than 63 bits is refused") {
    def numbers(last: Int)(out: ByteEncoder): Unit = {
      (1 to 9).foreach(_ => out.byte(0xff))
      out.byte(last)
    }
    refused("63 bits")(body(EntrySection -> numbers(1)))
    refused("64 bits")(body(EntrySection -> numbers(2)))
    refused("64 bits")(body(EntrySection -> { out => numbers(0x80)(out); out.byte(0) }))
  }

  test("text that is not UTF-8 is refused") {
    refused("UTF-8")(body(WriterSection -> (_.raw(Array(0xff.toByte)))))
  }

  test("bytes after a section's end are refused") {
    sections.foreach { case (tag, write) =>
      refused("after the end")(body(tag -> { out => write(out); out.byte(0) }))
    }
  }

  test("a section that is missing, named twice or out of order is refused") {
    sections.keys.foreach(tag => refused("")(bodyOf(sections - tag)))
    val out = new ByteEncoder
    out.section(SegmentsSection)(_.number(0))
    refused("section 12 after section 12")(body() ++ out.result)
    refused("section 2 after section 12")(body() ++ body())
  }

  test("unknown sections with an odd tag are skipped at any position") {
    Seq(1, 3, 5, 9, 13, 1001, Int.MaxValue).foreach { tag =>
      val read = readEntry(fileOf(LogFileKind.Entry, body(tag -> (_.text("from the future")))))._1
      assert(read == readEntry(fileOf(LogFileKind.Entry, body()))._1)
    }
  }

  test("an unknown section with an even tag makes an index unsupported even if it has other defects") {
    Seq(0, 16, 1000).foreach { tag =>
      Seq(body(tag -> (_ => ())), body(tag -> (_ => ()), StoresSection -> (_.number(9)))).foreach { encoded =>
        val error = intercept[DstlException](readEntry(fileOf(LogFileKind.Entry, encoded)))
        assert(error.condition == "DSTL_UNSUPPORTED_FORMAT")
        assert(error.parameters("found") == s"section $tag of its index")
        assert(error.parameters("software") == "some software")
      }
    }
  }

  test("an index that is cut at any position is refused") {
    val encoded = IndexCodec.encode(small.index)
    encoded.indices.foreach(length => refused("")(encoded.take(length)))
  }

  test("a commit entry has a batch and no name; a data file has a name, no batch, no base and no other files") {
    refused("without a batch")(bodyOf(sections - EntrySection))
    refused("name of a data file")(body(NameSection -> (_.text(dataPath))))
    val data = sections - EntrySection + (NameSection -> ((_: ByteEncoder).text(dataPath)))
    assert(readData(fileOf(LogFileKind.DataFile, bodyOf(data))).name.contains(dataPath))
    refused("without a name", LogFileKind.DataFile)(bodyOf(data - NameSection))
    refused("not the name", LogFileKind.DataFile)(bodyOf(data + (NameSection -> ((_: ByteEncoder).text("../x")))))
    refused("batch", LogFileKind.DataFile)(bodyOf(data + (EntrySection -> sections(EntrySection))))
    refused("base", LogFileKind.DataFile)(bodyOf(data + (BaseSection -> ((_: ByteEncoder).text("a")))))
    val other = dataIndex(SegmentEntry(key(), 1, Vector(SegmentPart(Some(dataPath), 24, 0, 0))))
    refused("other files", LogFileKind.DataFile)(IndexCodec.encode(other))
  }

  // LogLayoutSuite covers the other names that are refused.
  test("data file names that lead out of the base path are refused") {
    Seq("", "../" + dataPath, "data/../b").foreach(name => refused("name of a data file")(oneEntry(file = Some(name))))
  }

  test("store names that lead out of the store's directory are refused") {
    Seq(".", "..", "/", "a/b", "../0", "/etc").foreach(name => refused("store name")(oneEntry(storeName = name)))
  }

  test("checkpoint ids that lead out of the store's directory are refused") {
    Seq("", "/", "../../x", "a/b").foreach(id => refused("checkpoint id")(oneEntry(id = Some(id))))
  }

  test("partitions and versions out of range are refused, even if sums overflow") {
    Seq(-1L, Int.MaxValue + 1L, Long.MinValue).foreach(of => refused("is allowed")(oneEntry(partition = of)))
    Seq(-1L, Long.MinValue).foreach(version => refused("version")(oneEntry(version = version)))
  }

  test("parts outside the log's segments are refused before memory is allocated for them") {
    refused("outside")(oneEntry(offset = 0))
    refused("outside")(oneEntry(offset = LogFile.HeaderLength - 1L))
    refused("outside")(oneEntry(offset = Long.MinValue))
    refused("outside")(oneEntry(length = 1))
    refused("outside")(oneEntry(length = Int.MaxValue.toLong))
    refused("outside")(oneEntry(offset = Long.MaxValue, length = Int.MaxValue.toLong))
    refused("is allowed")(oneEntry(length = Int.MaxValue + 1L))
    refused("outside")(oneEntry(file = Some(dataPath), offset = 0))
    refused("outside")(oneEntry(file = Some(dataPath), offset = Long.MaxValue, length = 1))
  }

  test("a commit entry names a segment once") {
    val twice = entryIndex(SegmentEntry(key(), 1, Vector.empty), SegmentEntry(key(), 2, Vector.empty))
    refused("twice")(IndexCodec.encode(twice))
  }

  test("a data file may hold two attempts of one segment") {
    val twice = dataIndex(SegmentEntry(key(), 1, Vector.empty), SegmentEntry(key(), 2, Vector.empty))
    assert(readData(write(twice)) == twice)
  }

  test("a list of snapshots with an impossible batch, version or file is refused") {
    val oneStore = StoresSection -> { (out: ByteEncoder) =>
      out.number(1); out.number(0); out.text("")
    }
    def list(since: Long, plainUpTo: Long, snapshots: (Long, Long, Long)*) = body(
      oneStore,
      SnapshotsSection -> { out =>
        out.number(since)
        out.number(plainUpTo)
        out.number(snapshots.size.toLong)
        snapshots.foreach { case (store, version, ago) =>
          Seq(store, 0L, version).foreach(out.number)
          out.byte(SegmentsCodec.NoId)
          Seq(ago, 0L).foreach(out.number)
        }
      }
    )
    def held(version: Long, by: Long) =
      HeldSnapshot(key(version = version, kind = SegmentKind.Snapshot), by, Vector.empty)
    val read = readEntry(fileOf(LogFileKind.Entry, list(2, 1, (0, 4, 1), (0, batch + 1, 0))))._1.snapshots
    assert(read.contains(SnapshotList(batch - 2, 1, Vector(held(4, batch - 1), held(batch + 1, batch)))))
    refused("continues that of batch")(list(batch + 1, 0))
    refused("plain files up to")(list(0, batch + 2))
    refused("store number 1")(list(0, 0, (1, 1, 0)))
    refused("listed twice")(list(0, 0, (0, 1, 0), (0, 1, 1)))
    refused(s"in batch ${batch - 2}")(list(2, 0, (0, 1, 2)))
    refused(s"in batch ${batch - 1}")(list(0, 0, (0, batch + 1, 1)))
    refused("in batch -1")(list(0, 0, (0, 0, batch + 1)))
  }

  test("unknown kinds and numbers are refused") {
    refused("file number")(oneEntry(fileNumber = Some(1)))
    refused("file number")(oneEntry(fileNumber = Some(Int.MaxValue.toLong)))
    refused("store number")(oneEntry(store = 1))
    refused("kind of segment")(oneEntry(kind = 4))
    refused("without a name")(oneEntry(kind = 3))
    refused("kind of checkpoint id")(oneEntry(idKind = Some(3)))
    refused("previous entries")(body(previous(2, someRun, someRun)))
  }

  test("a trailer that places its index, or its log, outside the object is refused") {
    val length = 24 + 10 + 68L
    val good = LogTrailer(length, 24, 10, 10, 0, someEntry, 1)
    Seq(Long.MinValue, -1L, 0L, 23L, 25L, Int.MaxValue.toLong, Long.MaxValue - 5)
      .foreach(offset => refusedTrailer(good.copy(indexOffset = offset), length))
    Seq(Long.MinValue, -1L, 0L, length - 1, length + 1, Long.MaxValue)
      .foreach(logLength => refusedTrailer(good.copy(logLength = logLength), length))
    refusedTrailer(good.copy(logLength = length + 1, indexOffset = 25), length)
    refusedTrailer(good.copy(logLength = Long.MaxValue, indexOffset = Long.MaxValue - 78), length)
  }

  test("negative lengths in a trailer are refused") {
    val good = LogTrailer(24 + 68, 24, 0, 0, 0, someEntry, 1)
    val negative = Seq(good.copy(bodyLength = -1), good.copy(indexLength = -1, indexOffset = 25))
    (negative :+ good.copy(indexLength = Int.MinValue)).foreach(refusedTrailer(_, 24 + 68))
  }

  test("an index over the limit is refused without unpacking it") {
    val trailer = LogTrailer(24 + 68, 24, 0, LogFile.MaxIndexLength + 1, 0, someEntry, 1)
    val error = intercept[DstlException](readEntry(new Array[Byte](24) ++ trailer.bytes))
    assert(error.condition == "DSTL_LOG_TOO_LARGE")
  }

  test("a zlib bomb is refused without unpacking it") {
    val stored = deflate(new Array[Byte]((200 * MiB).toInt))
    assert(stored.length < MiB, "the input must be a zlib bomb")
    refusedStored("times its stored size")(stored, (200 * MiB).toInt)
  }

  test("an announced size that the index does not unpack to is refused") {
    val encoded = body()
    val stored = deflate(encoded)
    Seq(0, 1, encoded.length - 1, encoded.length + 1).foreach(size => refusedStored("unpack")(stored, size))
    refusedStored("unpack")(deflate(encoded) :+ 0.toByte, encoded.length)
    refusedStored("")(encoded, encoded.length)
  }

  test("an index that compresses beyond the reader's limit is stored uncompressed") {
    val index = entryIndex().copy(writer = writer.copy(host = "h" * 100000))
    val content = write(index)
    assert(content.length > 100000)
    assert(readEntry(content)._1 == index)
  }

  test("the writer refuses what the reader would refuse") {
    val part = SegmentPart(None, 24, 0, 0)
    def refuses(index: LogFileIndex): Unit = intercept[IllegalArgumentException](write(index)): Unit
    def entry(key: SegmentKey, parts: SegmentPart*) = SegmentEntry(key, 1, parts.toVector)
    refuses(entryIndex(entry(key(storeName = ".."))))
    refuses(entryIndex(entry(key(storeName = "\ud800"))))
    refuses(entryIndex(entry(key(id = Some("a/b")))))
    refuses(entryIndex(entry(key(partition = -1))))
    refuses(entryIndex(entry(key(version = -1))))
    refuses(entryIndex(entry(key(), part.copy(file = Some("elsewhere")))))
    refuses(entryIndex(entry(key(), part.copy(offset = 23))))
    refuses(entryIndex(entry(key(), part.copy(length = 1))))
    refuses(entryIndex(entry(key()), entry(key())))
    refuses(entryIndex().copy(batch = None))
    refuses(entryIndex().copy(batch = Some(-1)))
    refuses(entryIndex().copy(name = Some(dataPath)))
    refuses(dataIndex().copy(name = None))
    refuses(dataIndex(entry(key(), part.copy(file = Some(dataPath)))))
    intercept[IllegalArgumentException](LogFileWriter.pack(new Array[Byte](LogFile.MaxIndexLength + 1)))
  }

  test("an index with random bytes is read or refused at little cost") {
    val random = new scala.util.Random(1)
    for (_ <- 1 to 3000) {
      val encoded = IndexCodec.encode(small.index)
      for (_ <- 0 to random.nextInt(3)) encoded(random.nextInt(encoded.length)) = random.nextInt(256).toByte
      val (_, allocated) = allocating {
        try readEntry(fileOf(LogFileKind.Entry, encoded)): Unit
        catch {
          case _: DamagedLogException =>
          case e: DstlException => if (e.condition != "DSTL_UNSUPPORTED_FORMAT") throw e
        }
      }
      assert(allocated < MiB)
    }
  }

  private def refused(why: String, kind: LogFileKind = LogFileKind.Entry)(encoded: Array[Byte]): Assertion =
    refusedStored(why, kind)(deflate(encoded), encoded.length)

  private def refusedStored(why: String, kind: LogFileKind = LogFileKind.Entry)(
      stored: Array[Byte],
      bodyLength: Int
  ): Assertion = {
    val content = fileOf(kind, stored, bodyLength)
    val (error, allocated) = allocating(intercept[DamagedLogException] {
      if (kind == LogFileKind.Entry) readEntry(content): Unit else readData(content): Unit
    })
    assert(error.parameters("damage").contains(why))
    assert(allocated < 4 * MiB, "bytes were allocated before the refusal")
  }

  private def refusedTrailer(trailer: LogTrailer, objectLength: Long): Assertion = {
    val (_, allocated) = allocating(intercept[DamagedLogException] {
      readEntry(new Array[Byte](objectLength.toInt - LogFile.TrailerLength) ++ trailer.bytes)
    })
    assert(allocated < MiB)
  }

  private def fileOf(kind: LogFileKind, body: Array[Byte]): Array[Byte] = fileOf(kind, deflate(body), body.length)

  private def fileOf(kind: LogFileKind, stored: Array[Byte], bodyLength: Int): Array[Byte] = {
    val length = LogFile.HeaderLength.toLong + stored.length + LogFile.TrailerLength
    val id = if (kind == LogFileKind.Entry) someEntry else LogTrailer.NoEntry
    val trailer = LogTrailer(length, 24, stored.length, bodyLength, Checksums.of(stored), id, kind.code)
    LogFileWriter.header(kind.code) ++ stored ++ trailer.bytes
  }

  private def allocating[T](action: => T): (T, Long) = {
    val threads = ManagementFactory.getThreadMXBean.asInstanceOf[ThreadMXBean]
    val before = threads.getCurrentThreadAllocatedBytes
    val result = action
    (result, threads.getCurrentThreadAllocatedBytes - before)
  }

  /** An index of one segment with one part. */
  private def oneEntry(
      store: Long = 0,
      storeName: String = "",
      partition: Long = 0,
      version: Long = 8,
      id: Option[String] = None,
      kind: Int = 0,
      idKind: Option[Int] = None,
      file: Option[String] = None,
      fileNumber: Option[Long] = None,
      partCount: Long = 1,
      offset: Long = 24,
      length: Long = 0
  ): Array[Byte] = body(
    FilesSection -> { out =>
      out.number(file.size.toLong)
      file.foreach(out.text)
    },
    StoresSection -> { out =>
      out.number(1)
      out.number(0)
      out.text(storeName)
    },
    SegmentsSection -> { out =>
      out.number(1)
      out.number(store)
      out.signed(partition)
      out.signed(version)
      out.signed(1)
      out.byte(kind)
      out.byte(idKind.getOrElse(if (id.isEmpty) 0 else 2))
      id.foreach(out.text)
      out.number(partCount)
      out.number(fileNumber.getOrElse(file.size.toLong))
      out.signed(offset - 24)
      out.number(length)
      out.fixed32(0)
    }
  )

  private def deflate(bytes: Array[Byte]): Array[Byte] = {
    val out = new ByteArrayOutputStream
    Using.resource(new DeflaterOutputStream(out))(_.write(bytes))
    out.toByteArray
  }
}
