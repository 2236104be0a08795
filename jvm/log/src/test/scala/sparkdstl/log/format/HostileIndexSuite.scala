package sparkdstl.log.format

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.lang.management.ManagementFactory
import java.util.zip.Deflater

import com.sun.management.ThreadMXBean
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.error.{DamagedLogException, DstlException}
import sparkdstl.log.format.FormatSamples._

/**
 * Files whose checksums are right but whose content no writer of this project writes. They are refused, and refused
 * before they cost much memory.
 */
class HostileIndexSuite extends AnyFunSuite {
  private val MiB = 1024L * 1024

  for ((what, count) <- Seq("the largest number" -> Long.MaxValue, "two billion" -> 2000000000L)) {
    test(s"a false count of ranges is refused at once: $what") {
      refused("announced")(body { out => writeHead(out); out.number(1); out.number(count) })
    }
    test(s"a false count of data files is refused at once: $what") {
      refused("announced")(body { out => writeHead(out); out.number(1); out.number(0); out.number(count) })
    }
    test(s"a false count of entries is refused at once: $what") {
      refused("announced")(body { out => writeBeforeEntries(out); out.number(count) })
    }
    test(s"a false count of parts is refused at once: $what") {
      refused("announced")(body { out =>
        writeBeforeEntries(out); out.number(1); writeKey(out); out.number(count)
      })
    }
  }

  test("a text that is longer than the index is refused at once") {
    refused("were expected")(body { out => out.uuid(someRun); out.number(Int.MaxValue.toLong) })
    refused("is allowed")(body { out => out.uuid(someRun); out.number(Long.MaxValue) })
  }

  test("a number of more than 63 bits is refused") {
    refused("63 bits")(body { out => out.uuid(someRun); (1 to 9).foreach(_ => out.byte(0xff)); out.byte(1) })
    refused("63 bits")(body { out => out.uuid(someRun); (1 to 9).foreach(_ => out.byte(0x80)); out.byte(0) })
  }

  test("text that is not UTF-8 is refused, for two names must not be read as one") {
    refused("UTF-8")(body { out => out.uuid(someRun); out.bytes(Array(0xff.toByte)) })
  }

  test("bytes after the index's end are refused") {
    refused("after its end")(body { out => writeBeforeEntries(out); out.number(0); out.byte(0) })
  }

  test("an index that ends early is refused, wherever it ends") {
    val whole = IndexCodec.encode(small.index)
    whole.indices.foreach(length => refused("")(whole.take(length)))
  }

  test("ranges that overlap, descend or overflow are refused") {
    def ranges(values: (Long, Long)*): Array[Byte] = body { out =>
      writeHead(out)
      out.number(1)
      out.number(values.size.toLong)
      values.foreach { case (first, more) => out.number(first); out.number(more); out.uuid(someRun) }
      out.number(0)
      out.number(0)
    }
    refused("ascend")(ranges((0, 5), (5, 1)))
    refused("ascend")(ranges((7, 1), (3, 1)))
    refused("range")(ranges((Long.MaxValue, 1)))
  }

  test("a batch log has a batch, a data file has neither batch nor history") {
    def head(batchPlusOne: Long): Array[Byte] =
      body { out => writeHead(out); out.number(batchPlusOne); out.number(0); out.number(0); out.number(0) }
    refused("batch")(head(0))
    refused("batch", LogFileKind.DataFile)(head(1))
    refused(
      "history",
      LogFileKind.DataFile
    )(IndexCodec.encode(dataFile().copy(history = RunHistory.empty.append(1, someRun))))
  }

  test("data file names that lead elsewhere, or name one file twice, are refused") {
    Seq(
      "",
      "/",
      "data",
      "data/a",
      "/data/a/b",
      "../data/a",
      "data/../b",
      "data/a/..",
      "data/./a",
      "data/a/.",
      "data//a",
      "data/a/",
      "data/a/b/",
      "data/a/b//",
      "data/a/b/c",
      "batches/a/b",
      "Data/a/b",
      "s3a://data/a",
      "data/a:b/c",
      "data/a\\b/c",
      "data/a/b\u0000",
      "data/a/b\n"
    ).foreach { name =>
      assert(!LogLayout.isDataFile(name), name)
      refused("name of a data file")(oneEntry(file = Some(name)))
    }
  }

  test("store names that lead elsewhere are refused") {
    Seq(".", "..", "/", "a/b", "../0", "/etc").foreach(name => refused("store name")(oneEntry(storeName = name)))
  }

  test("checkpoint ids that lead elsewhere are refused") {
    Seq("", "/", "../../x", "a/b").foreach(id => refused("checkpoint id")(oneEntry(id = Some(id))))
  }

  test("parts outside the file's segments are refused before anyone allocates for them") {
    refused("outside")(oneEntry(offset = 0))
    refused("outside")(oneEntry(offset = LogFile.HeaderLength - 1L))
    refused("outside")(oneEntry(length = 1))
    refused("outside")(oneEntry(length = Int.MaxValue.toLong))
    refused("outside")(oneEntry(offset = Long.MaxValue, length = Int.MaxValue.toLong))
    refused("is allowed")(oneEntry(length = Int.MaxValue + 1L))
    refused("outside")(oneEntry(file = Some("data/a/b.log"), offset = 0))
    refused("outside")(oneEntry(file = Some("data/a/b.log"), offset = Long.MaxValue, length = 1))
  }

  test("a batch log names a segment once") {
    val twice = batchLog(SegmentEntry(key(), Vector.empty), SegmentEntry(key(), Vector.empty))
    refused("twice")(IndexCodec.encode(twice))
  }

  test("a data file may hold two attempts of one segment") {
    val twice = dataFile(SegmentEntry(key(), Vector.empty), SegmentEntry(key(), Vector.empty))
    assert(LogFileReader.readIndex(file, write(twice)) == twice)
  }

  test("unknown kinds and file numbers are refused") {
    refused("file number")(oneEntry(fileNumber = Some(1)))
    refused("file number")(oneEntry(fileNumber = Some(Int.MaxValue.toLong)))
    refused("kind of segment")(oneEntry(kind = 2))
    refused("kind of checkpoint id")(oneEntry(idKind = Some(3)))
    val trailer = LogFileWriter.trailer(LogFileKind.BatchLog, 1, 16, Array.empty, 0)
    val unknown = seal(trailer.patch(22, Seq[Byte](0, 9), 2))
    val error = intercept[DamagedLogException](LogFileReader.readTrailer(file, unknown, 52))
    assert(error.getMessage.contains("unknown kind 9"))
  }

  test("a trailer that places its index outside the file is refused") {
    def placed(offset: Long, stored: Array[Byte], length: Long): Unit = {
      val trailer = LogFileWriter.trailer(LogFileKind.BatchLog, 1, offset, stored, 10)
      intercept[DamagedLogException](LogFileReader.readTrailer(file, trailer, length)): Unit
    }
    val stored = new Array[Byte](10)
    Seq(
      Long.MinValue,
      -1L,
      0L,
      15L,
      17L,
      Int.MaxValue.toLong,
      Long.MaxValue - 5
    ).foreach(placed(_, stored, 16 + 10 + 36))
    placed(16, stored, 16 + 9 + 36)
    placed(6, stored, 6 + 10 + 36)
  }

  test("negative lengths in a trailer are refused") {
    val trailer = LogFileWriter.trailer(LogFileKind.BatchLog, 1, 17, Array.empty, -1)
    intercept[DamagedLogException](LogFileReader.readTrailer(file, trailer, 17 + 36))
    val negative =
      seal(LogFileWriter.trailer(LogFileKind.BatchLog, 1, 17, Array.empty, 0).patch(8, Seq.fill[Byte](4)(-1), 4))
    intercept[DamagedLogException](LogFileReader.readTrailer(file, negative, 16 + 36))
  }

  test("an index over the limit is refused without unpacking it") {
    val trailer = LogFileWriter.trailer(LogFileKind.BatchLog, 1, 16, Array.empty, LogFile.MaxIndexLength + 1)
    val error = intercept[DstlException](LogFileReader.readTrailer(file, trailer, 52))
    assert(error.condition == "DSTL_LOG_TOO_LARGE")
  }

  test("a zlib bomb is refused without unpacking it") {
    val stored = deflate(new Array[Byte]((200 * MiB).toInt))
    assert(stored.length < MiB, "it is a bomb")
    refusedStored("times its stored size")(stored, (200 * MiB).toInt)
  }

  test("an announced size that the index does not unpack to is refused") {
    val encoded = IndexCodec.encode(batchLog())
    val stored = deflate(encoded)
    Seq(0, 1, encoded.length - 1, encoded.length + 1).foreach(size => refusedStored("unpack")(stored, size))
    refusedStored("unpack")(deflate(encoded) :+ 0.toByte, encoded.length)
    refusedStored("")(encoded, encoded.length)
  }

  test("an index that compresses too well for a reader is stored uncompressed") {
    val index = batchLog().copy(writer = writer.copy(host = "h" * 100000))
    val content = write(index)
    assert(content.length > 100000)
    assert(LogFileReader.readIndex(file, content) == index)
  }

  test("the writer refuses what the reader would refuse") {
    val part = SegmentPart(None, 16, 0, 0)
    def refuses(index: LogFileIndex): Unit = intercept[IllegalArgumentException](write(index)): Unit
    refuses(batchLog(SegmentEntry(key(storeName = ".."), Vector.empty)))
    refuses(batchLog(SegmentEntry(key(storeName = "\ud800"), Vector.empty)))
    refuses(batchLog(SegmentEntry(key(id = Some("a/b")), Vector.empty)))
    refuses(batchLog(SegmentEntry(key(partition = -1), Vector.empty)))
    refuses(batchLog(SegmentEntry(key(), Vector(part.copy(file = Some("elsewhere"))))))
    refuses(batchLog(SegmentEntry(key(), Vector(part.copy(offset = 15)))))
    refuses(batchLog(SegmentEntry(key(), Vector(part.copy(length = 1)))))
    refuses(batchLog(SegmentEntry(key(), Vector.empty), SegmentEntry(key(), Vector.empty)))
    refuses(batchLog().copy(batch = None))
    intercept[IllegalArgumentException](LogFileWriter.pack(new Array[Byte](LogFile.MaxIndexLength + 1)))
  }

  test("an index with random bytes in it is read or refused, and costs little either way") {
    val random = new scala.util.Random(1)
    for (_ <- 1 to 3000) {
      val bytes = small.index.copy(history = RunHistory.empty)
      val encoded = IndexCodec.encode(bytes)
      for (_ <- 0 to random.nextInt(3)) encoded(random.nextInt(encoded.length)) = random.nextInt(256).toByte
      val (_, allocated) = allocating {
        try LogFileReader.readIndex(file, fileOf(LogFileKind.BatchLog, deflate(encoded), encoded.length)): Unit
        catch { case _: DamagedLogException => }
      }
      assert(allocated < MiB)
    }
  }

  private def refused(why: String, kind: LogFileKind = LogFileKind.BatchLog)(encoded: Array[Byte]): Assertion =
    refusedStored(why, kind)(deflate(encoded), encoded.length)

  private def refusedStored(
      why: String,
      kind: LogFileKind = LogFileKind.BatchLog
  )(stored: Array[Byte], bodyLength: Int): Assertion = {
    val content = fileOf(kind, stored, bodyLength)
    val (error, allocated) = allocating(intercept[DamagedLogException](LogFileReader.readIndex(file, content)))
    assert(error.parameters("damage").contains(why))
    assert(allocated < 4 * MiB, "bytes were allocated before it was refused")
  }

  private def fileOf(kind: LogFileKind, stored: Array[Byte], bodyLength: Int): Array[Byte] =
    LogFileWriter.header(kind, 1) ++ stored ++ LogFileWriter.trailer(kind, 1, 16, stored, bodyLength)

  /** A changed trailer with its checksum made right again. */
  private def seal(trailer: Array[Byte]): Array[Byte] = {
    val sealed32 = java.nio.ByteBuffer.wrap(trailer)
    sealed32.putInt(24, LogFileWriter.crc(trailer, 0, 24)).array
  }

  private def allocating[T](action: => T): (T, Long) = {
    val threads = ManagementFactory.getThreadMXBean.asInstanceOf[ThreadMXBean]
    val before = threads.getCurrentThreadAllocatedBytes
    val result = action
    (result, threads.getCurrentThreadAllocatedBytes - before)
  }

  private def body(write: IndexCodec.Encoder => Unit): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    write(new IndexCodec.Encoder(new DataOutputStream(bytes)))
    bytes.toByteArray
  }

  private def writeHead(out: IndexCodec.Encoder): Unit = {
    out.uuid(someRun)
    out.text("host")
    out.text("application")
  }

  private def writeBeforeEntries(out: IndexCodec.Encoder): Unit = {
    writeHead(out)
    out.number(8)
    out.number(0)
    out.number(0)
  }

  private def writeKey(
      out: IndexCodec.Encoder,
      storeName: String = "",
      id: Option[String] = None,
      kind: Int = 0,
      idKind: Option[Int] = None
  ): Unit = {
    out.number(0)
    out.number(0)
    out.text(storeName)
    out.number(8)
    out.byte(idKind.getOrElse(if (id.isEmpty) 0 else 2))
    id.foreach(out.text)
    out.byte(kind)
  }

  /** An index of one entry with one part. */
  private def oneEntry(
      storeName: String = "",
      id: Option[String] = None,
      kind: Int = 0,
      idKind: Option[Int] = None,
      file: Option[String] = None,
      fileNumber: Option[Long] = None,
      offset: Long = 16,
      length: Long = 0
  ): Array[Byte] = body { out =>
    writeHead(out)
    out.number(8)
    out.number(0)
    out.number(file.size.toLong)
    file.foreach(out.text)
    out.number(1)
    writeKey(out, storeName, id, kind, idKind)
    out.number(1)
    out.number(fileNumber.getOrElse(file.size.toLong))
    out.number(offset)
    out.number(length)
    out.fixed32(0)
  }

  private def deflate(bytes: Array[Byte]): Array[Byte] = {
    val deflater = new Deflater
    try {
      deflater.setInput(bytes)
      deflater.finish()
      val out = new ByteArrayOutputStream
      val buffer = new Array[Byte](64 * 1024)
      while (!deflater.finished()) out.write(buffer, 0, deflater.deflate(buffer))
      out.toByteArray
    } finally deflater.end()
  }
}
