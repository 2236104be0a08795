// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import java.util.UUID

/**
 * The golden files of format version 2: the content of each, and a main that writes them.
 *
 * A golden file of a released version is never rewritten: that every release reads it is the
 * promise of `docs/log-file-format.md`. To add one, describe it here and run, in the repository's root,
 * {{{sbt "log/Test/runMain sparkdstl.log.format.GoldenFiles $PWD"}}}
 * Its argument is the repository's root. It writes the files that are missing and touches no other.
 */
object GoldenFiles {
  private val Directory = "jvm/log/src/test/resources/golden/v2"
  private val Software = "spark-dstl 0.1.0"

  val run: UUID = UUID.fromString("cccccccc-0000-4000-8000-000000000003")
  private val writer = Writer(run, 4, "driver.example", "app-0001")
  private val firstId = Some("d0d0d0d0-0000-4000-8000-00000000000a")
  private val secondId = Some("d0d0d0d0-0000-4000-8000-00000000000b")
  val dataPath: String = LogLayout.dataFile(4, run, "1", 0, "5eed")
  private val otherPath = LogLayout.dataFile(4, run, "driver", 4, "1beef")

  /**
   * A file and its content: an index, or the error if the file needs a later release.
   *
   * @param name
   *   the name of the object; for a commit entry the number of its batch
   */
  final case class Golden(
      fileName: String,
      name: String,
      index: LogFileIndex,
      content: Array[Byte],
      unsupported: Option[String] = None
  )

  /** One inline segment in the first batch of a query: the example of the specification. */
  val oneSegment: Golden =
    entry("one-segment.entry", 3)(CommittedSegment(key(0, 1, "", 4), 17, inline("a change")))

  /** A batch without any state change. */
  val noSegment: Golden = entry("no-segment.entry", 0)()

  /** A data file with one segment in two parts and a part of another segment between them. */
  val data: Golden = {
    val log = new LogFileWriter(LogFileKind.DataFile)
    val (large, named) = (key(0, 1, "", 8, secondId), key(1, 0, "left-keyToNumValues", 8))
    val first = log.append(large, bytes("the first part of a large segment; "))
    val between = log.append(named, bytes("changes of a named store"))
    val second = log.append(large, bytes("its second part; "))
    val index = LogFileIndex(
      LogFileKind.DataFile,
      writer.copy(host = "executor.example"),
      None,
      None,
      Vector(SegmentEntry(large, 41, Vector(first, second)), SegmentEntry(named, 40, Vector(between))),
      name = Some(dataPath),
      software = Software
    )
    Golden("data.log", dataPath, index, log.finish(index).toArray)
  }

  private def inOther(offset: Long) = SegmentPart(Some(otherPath), offset, 1048576, 0xdeadbeef)

  private val inData = data.index.entries.map(_.parts.map(part => Right(part.copy(file = Some(dataPath)))))

  /** A commit entry of a query without checkpoint ids, with each kind of segment. */
  val plainIds: Golden = entry("without-ids.entry", 7, """{"nextBatchWatermarkMs":1760000000000}""")(
    CommittedSegment(key(0, 0, "", 8), 39, inline("inline changes")),
    CommittedSegment(key(1, 0, "left-keyToNumValues", 8), 40, inData(1)),
    CommittedSegment(key(1, 199, "Zähler ☃", 8), -1, inline("odd names")),
    CommittedSegment(key(300, 0, "", 8), 44, inline("")),
    CommittedSegment(key(300, 1, "", 8), 45, Vector.empty),
    CommittedSegment(key(300, 2, "", 8), 46, Vector(Right(inOther(5000000000L))))
  )

  /** A commit entry with checkpoint ids, checksum files and a base path. */
  val withIds: Golden = entry(
    "with-ids.entry",
    7,
    s"""{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["${firstId.get}"],["${secondId.get}"]]}}""",
    Some("s3a://bucket/log ☃"),
    offsets = Some(0x9e3779b9)
  )(
    CommittedSegment(key(0, 0, "", 8, firstId), 39, inline("inline changes")),
    CommittedSegment(key(0, 0, "", 8, firstId, SegmentKind.Checksum), 39, inline("its checksum")),
    CommittedSegment(key(0, 1, "", 8, secondId), 41, inData(0) ++ inline("an inline tail")),
    CommittedSegment(key(1, 5, "", 8, Some("not-a-uuid")), 42, inline("an odd id"))
  )

  /**
   * A batch with a snapshot that is part of its commit and one of an earlier version. It follows an entry that lists all
   * snapshots before, and one
   * with another snapshot.
   */
  val snapshots: Golden = {
    val (own, earlier) = (key(0, 0, "", 8, kind = SegmentKind.Snapshot), key(0, 1, "", 7, kind = SegmentKind.Snapshot))
    val file = key(0, 1, "", 7, Some("000012-d0d0d0d0-0000-4000-8000-00000000000c"), SegmentKind.SnapshotFile)
    val held = Vector(
      HeldSnapshot(key(1, 0, "left", 6, kind = SegmentKind.Snapshot), 6, Vector(dataPath, otherPath)),
      HeldSnapshot(own, 7, Vector.empty),
      HeldSnapshot(earlier, 7, Vector(otherPath))
    )
    entry("snapshots.entry", 7, snapshots = Some(SnapshotList(5, 2, held)))(
      CommittedSegment(key(0, 0, "", 8), 39, inline("changes")),
      CommittedSegment(own, 39, inline("a snapshot")),
      CommittedSegment(earlier, 31, inline("a snapshot of what was before")),
      CommittedSegment(file, 31, Vector(Right(inOther(24))))
    )
  }

  /** An entry with an optional section and optional flags that no release knows. */
  val optionalSection: Golden = remade("optional.entry", None, section = Some(17), optionalFlags = 6)

  val requiredSection: Golden = remade("required-section.entry", Some("section 18"), section = Some(18))

  val requiredFlag: Golden = remade("required-flag.entry", Some("flags 00000002"), requiredFlags = 2)

  val laterVersion: Golden = remade("later-version.entry", Some("version 3"), version = 3)

  val all: Seq[Golden] = Seq(oneSegment, noSegment, data, plainIds, withIds, snapshots) ++
    Seq(optionalSection, requiredSection, requiredFlag, laterVersion)

  def main(arguments: Array[String]): Unit = {
    val directory = Paths.get(arguments(0)).resolve(Directory)
    Files.createDirectories(directory)
    all.foreach(golden => writeIfMissing(directory.resolve(golden.fileName), golden.content))
  }

  private def writeIfMissing(file: Path, content: Array[Byte]): Unit =
    if (!Files.exists(file)) {
      Files.write(file, content)
      println(s"wrote $file")
    }

  private def entry(
      fileName: String,
      batch: Long,
      json: String = """{"nextBatchWatermarkMs":0}""",
      base: Option[String] = None,
      snapshots: Option[SnapshotList] = None,
      offsets: Option[Int] = None
  )(segments: CommittedSegment*): Golden = {
    val id = new UUID(0xeeeeeeee00004000L, 0x8000000000000000L + batch)
    val link = EntryLink(id, Option.when(batch > 3)(new UUID(0xeeeeeeee00004000L, 0x8000000000000000L + batch - 1)))
    val spark = bytes(s"v1\n$json")
    val encoded = CommitEntry.encode(spark, batch, link, writer, base, segments.toVector, snapshots, offsets)
    // The golden files keep the software version that wrote them.
    val index = encoded.index.copy(software = Software)
    val own = encoded.payload.parts
    val log = remadeLog(own.slice(1, own.size - 2), index, IndexCodec.encode(index))
    Golden(fileName, batch.toString, index, own.head ++ log)
  }

  /** `oneSegment` with sections or flags that no release knows. */
  private def remade(
      fileName: String,
      unsupported: Option[String],
      section: Option[Int] = None,
      requiredFlags: Int = 0,
      optionalFlags: Int = 0,
      version: Int = LogFile.FormatVersion
  ): Golden = {
    val Golden(_, _, index, content, _) = oneSegment
    val logStart = content.indexOfSlice(LogFile.HeaderMagic)
    val segments = content.slice(logStart + LogFile.HeaderLength, logStart + LogFile.HeaderLength + 8)
    val more = new ByteEncoder
    section.foreach(more.section(_)(_.text("from the future")))
    val header = LogFileWriter.header(index.kind.code, version, requiredFlags, optionalFlags)
    val body = IndexCodec.encode(index) ++ more.result
    val log = remadeLog(Vector(header, segments), index, body, requiredFlags, optionalFlags, version)
    oneSegment.copy(fileName = fileName, content = content.take(logStart) ++ log, unsupported = unsupported)
  }

  private def remadeLog(
      before: Vector[Array[Byte]],
      index: LogFileIndex,
      body: Array[Byte],
      requiredFlags: Int = 0,
      optionalFlags: Int = 0,
      version: Int = LogFile.FormatVersion
  ): Array[Byte] = {
    val (start, stored) = (before.reduce(_ ++ _), LogFileWriter.pack(body))
    val trailer = LogTrailer(
      start.length.toLong + stored.length + LogFile.TrailerLength,
      start.length.toLong,
      stored.length,
      body.length,
      Checksums.of(stored),
      index.link.get.entry,
      index.kind.code,
      version,
      requiredFlags,
      optionalFlags
    )
    start ++ stored ++ trailer.bytes
  }

  private def bytes(text: String): Array[Byte] = text.getBytes(UTF_8)

  private def inline(text: String): Vector[Either[Array[Byte], SegmentPart]] = Vector(Left(bytes(text)))

  private def key(
      operator: Long,
      partition: Int,
      store: String,
      version: Long,
      id: Option[String] = None,
      kind: SegmentKind = SegmentKind.Changelog
  ): SegmentKey = SegmentKey(operator, partition, store, version, id, kind)
}
