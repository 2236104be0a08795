package sparkdstl.log.format

import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}
import java.util.UUID

import org.apache.hadoop.fs.Path
import org.scalacheck.Gen

/** A log file's bytes, its index, and the other log files that the index refers to. */
final case class Sample(content: Array[Byte], index: LogFileIndex, others: Map[String, Array[Byte]] = Map.empty)

/** Builders and generators for the format's tests. */
object FormatSamples {
  val file = new Path("/log/batches/sample.log")
  val someRun: UUID = UUID.fromString("11111111-1111-4111-8111-111111111111")
  val writer: Writer = Writer(someRun, "driver.example", "local-0001")

  def ascii(text: String): Array[Byte] = text.getBytes(US_ASCII)

  def key(
      partition: Int = 0,
      storeName: String = "",
      version: Long = 8,
      id: Option[String] = None,
      kind: SegmentKind = SegmentKind.Changelog
  ): SegmentKey =
    SegmentKey(0, partition, storeName, version, id, kind)

  def batchLog(entries: SegmentEntry*): LogFileIndex =
    LogFileIndex(LogFileKind.BatchLog, writer, Some(7), RunHistory.empty, entries.toVector)

  def dataFile(entries: SegmentEntry*): LogFileIndex =
    LogFileIndex(LogFileKind.DataFile, writer, None, RunHistory.empty, entries.toVector)

  /** A file of `index`, with the bytes that its own parts name being `segments`, in order. */
  def write(index: LogFileIndex, segments: Array[Byte]*): Array[Byte] = {
    val file = new LogFileWriter(index.kind)
    segments.foreach(file.append)
    file.finish(index)
  }

  /** A batch log of two inline segments and one whose bytes are in a data file. */
  def small: Sample = {
    val path = s"data/$someRun/1-0-0-a.log"
    val data = new LogFileWriter(LogFileKind.DataFile)
    val large = data.append(ascii("a large segment"))
    val dataContent = data.finish(dataFile(SegmentEntry(key(partition = 2), Vector(large))))
    val batch = new LogFileWriter(LogFileKind.BatchLog)
    val index = batchLog(
      SegmentEntry(key(), Vector(batch.append(ascii("first")), batch.append(ascii("second")))),
      SegmentEntry(key(partition = 1, id = Some(someRun.toString)), Vector(batch.append(ascii("third")))),
      SegmentEntry(key(partition = 2), Vector(large.copy(file = Some(path))))
    )
      .copy(history = RunHistory.empty.append(5, someRun).append(6, someRun))
    Sample(batch.finish(index), index, Map(path -> dataContent))
  }

  /** Reads everything there is to read in a file and verifies it: header, trailer, index and every part. */
  def readAll(content: Array[Byte], others: Map[String, Array[Byte]]): (LogFileIndex, Vector[String]) = {
    val index = LogFileReader.readIndex(file, content)
    val segments = index.entries.map { entry =>
      entry.parts.map { part =>
        val source = part.file.fold(content)(others)
        val bytes = source.slice(part.offset.toInt, part.offset.toInt + part.length)
        LogFileReader.verify(file, entry.key, part, bytes)
        new String(bytes, UTF_8)
      }.mkString
    }
    (index, segments)
  }

  private val oddCharacter: Gen[Char] =
    Gen.frequency(6 -> Gen.alphaNumChar, 3 -> Gen.oneOf(" ._-%#?:+é☃\n"), 1 -> Gen.oneOf('\u0000', '\\', '~'))

  val text: Gen[String] = Gen.choose(0, 12).flatMap(Gen.stringOfN(_, oddCharacter))

  val uuid: Gen[UUID] = Gen.zip(Gen.long, Gen.long).map { case (high, low) => new UUID(high, low) }

  val storeName: Gen[String] =
    Gen.frequency(3 -> Gen.const(""), 2 -> text.filter(name => name != "." && name != ".."))

  val checkpointId: Gen[Option[String]] = Gen.frequency(
    2 -> Gen.const(None),
    2 -> uuid.map(id => Some(id.toString)),
    1 -> uuid.map(id => Some(id.toString.toUpperCase)),
    1 -> Gen.oneOf("0-0-0-0-0", "x.changelog", "a_b", "_", ".crc").map(Some(_)),
    1 -> text.filter(_.nonEmpty).map(Some(_))
  )

  /** Numbers of every magnitude up to what a file name may hold. */
  val number: Gen[Long] = Gen.choose(0, 18).flatMap(digits => Gen.choose(0L, math.pow(10, digits.toDouble).toLong - 1))

  val segmentKey: Gen[SegmentKey] = for {
    operator <- number
    partition <- Gen.oneOf(Gen.choose(0, 200), Gen.choose(0, 999999999))
    name <- storeName
    version <- number
    id <- checkpointId
    kind <- Gen.oneOf(SegmentKind.all)
  } yield SegmentKey(operator, partition, name, version, id, kind)

  val history: Gen[RunHistory] = for {
    steps <- Gen.listOf(Gen.zip(Gen.choose(0L, 3L), Gen.choose(0L, 5L), Gen.oneOf(1L, 2L, 3L)))
  } yield RunHistory(steps.foldLeft(Vector.empty[RunRange]) { case (ranges, (gap, length, id)) =>
    val first = ranges.lastOption.fold(0L)(_.last + 1) + gap
    ranges :+ RunRange(first, first + length, new UUID(0, id))
  })

  private val content: Gen[Array[Byte]] =
    Gen.choose(0, 40).flatMap(Gen.containerOfN[Array, Byte](_, Gen.choose(Byte.MinValue, Byte.MaxValue)))

  private val elsewhere: Gen[SegmentPart] = for {
    name <- Gen.oneOf(Seq("1-0-0-a.log", "driver-12-1-ff.log", "é ☃.log").map(name => s"data/$someRun/$name"))
    offset <- Gen.oneOf(Gen.choose(16L, 5000L), Gen.choose(16L, Long.MaxValue - Int.MaxValue))
    length <- Gen.choose(0, Int.MaxValue)
    crc <- Gen.choose(Int.MinValue, Int.MaxValue)
  } yield SegmentPart(Some(name), offset, length, crc)

  /** Any file that a writer may write: inline parts with their bytes, parts in files that are not at hand. */
  val sample: Gen[Sample] = for {
    kind <- Gen.oneOf(LogFileKind.BatchLog, LogFileKind.DataFile)
    by <- Gen.zip(uuid, text, text).map { case (id, host, application) => Writer(id, host, application) }
    batch <- number
    past <- history
    keys <- Gen.listOf(segmentKey).map(_.distinct)
    parts <- Gen.listOfN(keys.size, Gen.choose(0, 3).flatMap(Gen.listOfN(_, Gen.either(content, elsewhere))))
  } yield {
    val isBatchLog = kind == LogFileKind.BatchLog
    val out = new LogFileWriter(kind)
    val entries = keys.zip(parts).map { case (key, list) =>
      SegmentEntry(key, list.map(_.fold(out.append, identity)).toVector)
    }
    val index = LogFileIndex(
      kind,
      by,
      Option.when(isBatchLog)(batch),
      if (isBatchLog) past else RunHistory.empty,
      entries.toVector
    )
    Sample(out.finish(index), index)
  }
}
