package sparkdstl.log.format

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import java.util.UUID

/**
 * The golden files of format version 1: what each must hold, and a main that writes them.
 *
 * They were written once and are never rewritten for a version that has been released: that they still read is the
 * promise of `docs/log-file-format.md`. To add one, describe it here and run, in the repository's root,
 * {{{sbt "log/Test/runMain sparkdstl.log.format.GoldenFiles $PWD"}}}
 * Its argument is the repository's root. It writes the files that are missing and touches no other.
 */
object GoldenFiles {
  private val Directory = "jvm/log/src/test/resources/golden/v1"

  val runA: UUID = UUID.fromString("aaaaaaaa-0000-4000-8000-000000000001")
  val runB: UUID = UUID.fromString("bbbbbbbb-0000-4000-8000-000000000002")
  val runC: UUID = UUID.fromString("cccccccc-0000-4000-8000-000000000003")
  private val writer = Writer(runC, "driver.example", "app-0001")
  private val firstId = Some("d0d0d0d0-0000-4000-8000-00000000000a")
  private val secondId = Some("d0d0d0d0-0000-4000-8000-00000000000b")
  private val dataPath = s"data/$runC/1-0-0-5eed.log"
  private val otherPath = s"data/$runC/2-4-1-beef.log"

  /** A file's name, its index, and the bytes between header and index. */
  final case class Golden(name: String, index: LogFileIndex, segments: Array[Byte], content: Array[Byte])

  /** One inline segment: the example of the specification. */
  val oneSegment: Golden = build("one-segment.log", LogFileKind.BatchLog) { part =>
    LogFileIndex(
      LogFileKind.BatchLog,
      writer,
      Some(3),
      RunHistory(Vector(RunRange(0, 2, runC))),
      Vector(SegmentEntry(key(0, 1, "", 4, None), Vector(part("a change"))))
    )
  }

  /** A batch without any state change, the first of its query. */
  val emptyBatch: Golden = build("empty-batch.log", LogFileKind.BatchLog) { _ =>
    LogFileIndex(LogFileKind.BatchLog, writer, Some(0), RunHistory.empty, Vector.empty)
  }

  /** A data file with one segment in two parts, another's part between them. */
  val data: Golden = build("data.log", LogFileKind.DataFile) { part =>
    val first = part("the first part of a large segment; ")
    val between = part("changes of a named store")
    val second = part("its second part; ")
    LogFileIndex(
      LogFileKind.DataFile,
      writer.copy(host = "executor.example"),
      None,
      RunHistory.empty,
      Vector(
        SegmentEntry(key(0, 1, "", 8, secondId), Vector(first, second)),
        SegmentEntry(key(1, 0, "left-keyToNumValues", 8, None), Vector(between))
      )
    )
  }

  /** Everything that a batch log can name. */
  val batch: Golden = build("batch.log", LogFileKind.BatchLog) { part =>
    val inData = data.index.entries.map(_.parts.map(_.copy(file = Some(dataPath))))
    LogFileIndex(
      LogFileKind.BatchLog,
      writer,
      Some(7),
      RunHistory(Vector(RunRange(0, 2, runA), RunRange(3, 3, runB), RunRange(5, 6, runC))),
      Vector(
        SegmentEntry(key(0, 0, "", 8, firstId), Vector(part("inline changes"))),
        SegmentEntry(key(0, 0, "", 8, firstId, SegmentKind.Checksum), Vector(part("its checksum"))),
        SegmentEntry(key(0, 1, "", 8, secondId), inData(0) :+ part("an inline tail")),
        SegmentEntry(key(1, 0, "left-keyToNumValues", 8, None), inData(1)),
        SegmentEntry(key(1, 199, "Zähler ☃", 8, Some("not-a-uuid")), Vector(part("odd names"))),
        SegmentEntry(key(300, 0, "", 8, None), Vector(part(""))),
        SegmentEntry(key(300, 1, "", 8, None), Vector.empty),
        SegmentEntry(
          key(300, 2, "", 8, None),
          Vector(SegmentPart(Some(otherPath), 5000000000L, 1048576, 0xdeadbeef))
        )
      )
    )
  }

  val all: Seq[Golden] = Seq(oneSegment, emptyBatch, data, batch)

  def main(arguments: Array[String]): Unit = {
    val directory = Paths.get(arguments(0)).resolve(Directory)
    Files.createDirectories(directory)
    all.foreach(golden => writeIfMissing(directory.resolve(golden.name), golden.content))
  }

  private def writeIfMissing(file: Path, content: Array[Byte]): Unit =
    if (!Files.exists(file)) {
      Files.write(file, content)
      println(s"wrote $file")
    }

  private def build(name: String, kind: LogFileKind)(index: (String => SegmentPart) => LogFileIndex): Golden = {
    val out = new LogFileWriter(kind)
    val segments = new java.io.ByteArrayOutputStream
    val built = index { text =>
      segments.write(text.getBytes(UTF_8))
      out.append(text.getBytes(UTF_8))
    }
    Golden(name, built, segments.toByteArray, out.finish(built))
  }

  private def key(
      operator: Long,
      partition: Int,
      store: String,
      version: Long,
      id: Option[String],
      kind: SegmentKind = SegmentKind.Changelog
  ): SegmentKey =
    SegmentKey(operator, partition, store, version, id, kind)
}
