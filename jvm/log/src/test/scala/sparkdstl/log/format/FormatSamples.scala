// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}
import java.util.UUID

import scala.util.Random

import org.apache.hadoop.fs.Path
import org.scalacheck.Gen

import sparkdstl.log.storage.ObjectTail

/** An object's bytes, its index, and the data files that the index refers to. */
final case class Sample(content: Array[Byte], index: LogFileIndex, others: Map[String, Array[Byte]] = Map.empty)

/** Builders and generators for tests of the format. */
object FormatSamples {
  val batch = 7L
  val file = new Path(s"/checkpoint/commits/$batch")
  val someRun: UUID = UUID.fromString("11111111-1111-4111-8111-111111111111")
  val someEntry: UUID = UUID.fromString("22222222-2222-4222-8222-222222222222")
  val writer: Writer = Writer(someRun, 3, "driver.example", "local-0001")
  val link: EntryLink = EntryLink(someEntry, None)
  val dataPath: String = LogLayout.dataFile(3, someRun, "1", 0, "a")

  def ascii(text: String): Array[Byte] = text.getBytes(US_ASCII)

  def randomBytes(random: Random, count: Int): Array[Byte] = {
    val bytes = new Array[Byte](count)
    random.nextBytes(bytes)
    bytes
  }

  def whole(content: Array[Byte]): ObjectTail = ObjectTail(content, content.length.toLong)

  def key(
      partition: Int = 0,
      storeName: String = "",
      version: Long = 8,
      id: Option[String] = None,
      kind: SegmentKind = SegmentKind.Changelog
  ): SegmentKey =
    SegmentKey(0, partition, storeName, version, id, kind)

  def entryIndex(entries: SegmentEntry*): LogFileIndex =
    LogFileIndex(LogFileKind.Entry, writer, Some(batch), Some(link), entries.toVector)

  def dataIndex(entries: SegmentEntry*): LogFileIndex =
    LogFileIndex(LogFileKind.DataFile, writer, None, None, entries.toVector, name = Some(dataPath))

  /** A log of `index` without inline segments. */
  def write(index: LogFileIndex): Array[Byte] = new LogFileWriter(index.kind).finish(index).toArray

  /** The log of a commit entry with two inline segments and one in a data file. */
  def small: Sample = {
    val data = new LogFileWriter(LogFileKind.DataFile)
    val large = data.append(key(partition = 2), ascii("a large segment"))
    val dataContent = data.finish(dataIndex(SegmentEntry(key(partition = 2), 12, Vector(large)))).toArray
    val log = new LogFileWriter(LogFileKind.Entry)
    val third = key(partition = 1, id = Some(someRun.toString))
    val index = entryIndex(
      SegmentEntry(key(), 10, Vector(log.append(key(), ascii("first")), log.append(key(), ascii("second")))),
      SegmentEntry(third, 11, Vector(log.append(third, ascii("third")))),
      SegmentEntry(key(partition = 2), 12, Vector(large.copy(file = Some(dataPath))))
    ).copy(link = Some(EntryLink(someEntry, Some(someRun))), base = Some("s3a://bucket/log"))
    Sample(log.finish(index).toArray, index, Map(dataPath -> dataContent))
  }

  /** The index of a whole object, and the offset at which its log begins. */
  def readEntry(content: Array[Byte], entry: Path = file): (LogFileIndex, Long) =
    CommitEntry.inspect(entry, whole(content)) match {
      case EntryInspection.Whole(index, logStart) => (index, logStart)
      case other => throw new IllegalStateException(s"read as $other")
    }

  def readData(content: Array[Byte], name: String = dataPath): LogFileIndex =
    DataFileReader.read(new Path(name), name, whole(content))
      .getOrElse(throw new IllegalStateException("it is whole"))

  /** Reads and verifies all of a commit entry: header, trailer, index and every part. */
  def readAll(content: Array[Byte], others: Map[String, Array[Byte]]): (LogFileIndex, Vector[String]) = {
    val (index, logStart) = readEntry(content)
    val segments = index.entries.map { entry =>
      entry.parts.map { part =>
        val (source, start) = part.file.fold((content, logStart))(name => (others(name), 0L))
        val from = (start + part.offset).toInt
        val bytes = source.slice(from, from + part.length)
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

  val qualifier: Gen[Option[String]] = Gen.frequency(
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
    id <- qualifier
    kind <- Gen.oneOf(SegmentKind.all)
  } yield {
    val named = if (kind == SegmentKind.SnapshotFile) id.orElse(Some("000012-a")) else id
    SegmentKey(operator, partition, name, version, named, kind)
  }

  private val content: Gen[Array[Byte]] =
    Gen.choose(0, 40).flatMap(Gen.containerOfN[Array, Byte](_, Gen.choose(Byte.MinValue, Byte.MaxValue)))

  val dataFileName: Gen[String] = for {
    epoch <- number
    run <- uuid
    executor <- Gen.oneOf("1", "driver", "12-3", "a.b/c", "_x", "é")
    sequence <- number
    instance <- Gen.oneOf("a", "0", "5eed1")
  } yield LogLayout.dataFile(epoch, run, executor, sequence, instance)

  private val elsewhere: Gen[SegmentPart] = for {
    name <- dataFileName
    offset <- Gen.oneOf(Gen.choose(24L, 5000L), Gen.choose(24L, Long.MaxValue - Int.MaxValue))
    length <- Gen.choose(0, Int.MaxValue)
    crc <- Gen.choose(Int.MinValue, Int.MaxValue)
  } yield SegmentPart(Some(name), offset, length, crc)

  private val someWriter: Gen[Writer] =
    Gen.zip(uuid, number, text, text).map { case (id, epoch, host, application) =>
      Writer(id, epoch, host, application)
    }

  val committedSegments: Gen[Vector[CommittedSegment]] = for {
    keys <- Gen.listOf(segmentKey).map(_.distinct)
    attempts <- Gen.listOfN(keys.size, Gen.oneOf(number, Gen.long))
    parts <- Gen.listOfN(keys.size, Gen.choose(0, 3).flatMap(Gen.listOfN(_, Gen.either(content, elsewhere))))
  } yield keys.lazyZip(attempts).lazyZip(parts).map { case (key, attempt, list) =>
    CommittedSegment(key, attempt, list.toVector)
  }.toVector

  /** Any entry: its batch and its components. */
  val entry: Gen[(Long, EntryLink, Writer, Option[String], Vector[CommittedSegment])] = for {
    batch <- number
    link <- Gen.zip(uuid, Gen.option(uuid)).map { case (id, previous) => EntryLink(id, previous) }
    by <- someWriter
    base <- Gen.option(text)
    segments <- committedSegments
  } yield (batch, link, by, base, segments)

  val dataFile: Gen[Sample] = for {
    by <- someWriter
    name <- dataFileName
    keys <- Gen.listOf(segmentKey)
    parts <- Gen.listOfN(keys.size, Gen.listOfN(2, content))
  } yield {
    val log = new LogFileWriter(LogFileKind.DataFile)
    val entries = keys.zip(parts).map { case (key, list) =>
      SegmentEntry(key, key.version, list.map(log.append(key, _)).toVector)
    }
    val index = LogFileIndex(LogFileKind.DataFile, by, None, None, entries.toVector, name = Some(name))
    Sample(log.finish(index).toArray, index)
  }
}
