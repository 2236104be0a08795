package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path

/**
 * Who committed a batch, as the third line of its commit entry. Spark reads the first two lines (format version and
 * metadata) and leaves the rest alone (`CommitLog.readCommitMetadata`), so a checkpoint with notes stays one that stock
 * Spark reads. The entry is created exclusively; with the note in it, that one creation decides which run's batch log
 * counts.
 *
 * @param hasBatchLog whether the batch's state changes are in the run's batch log; otherwise they are in plain files
 * @param base        the log's base path if one was configured
 */
private[dstl] final case class CommitNote(
    run: UUID,
    hasBatchLog: Boolean,
    host: String,
    application: String,
    base: Option[String]
) {

  def line: String = {
    val node = CommitNote.mapper.createObjectNode()
    node.put(CommitNote.VersionField, CommitNote.Version).put("run", run.toString).put("batchLog", hasBatchLog)
    node.put("host", host).put("application", application)
    base.foreach(node.put("base", _))
    node.toString
  }
}

private[dstl] object CommitNote {
  private val VersionField = "dstl"
  private val Version = 1
  private val mapper = new ObjectMapper

  /** `entry` as Spark wrote it, with the note added. */
  def append(entry: Array[Byte], note: CommitNote): Array[Byte] = {
    val text = new String(entry, UTF_8)
    s"${text.stripLineEnd}\n${note.line}".getBytes(UTF_8)
  }

  /** The note in a commit entry's content; `None` if stock Spark wrote the entry. */
  def parse(entry: Path, content: Array[Byte]): Option[CommitNote] = {
    val lines = new String(content, UTF_8).split('\n')
    if (lines.length < 2 || !lines(0).startsWith("v"))
      throw DstlErrors.damagedCommitEntry(entry, s"it has ${content.length} bytes and no metadata", null)
    lines.lift(2).filter(_.trim.nonEmpty).map { line =>
      try {
        val node = mapper.readTree(line)
        val version = node.required(VersionField).intValue()
        require(version == Version, s"its note has version $version; this release reads version $Version")
        CommitNote(
          UUID.fromString(node.required("run").textValue()),
          node.required("batchLog").booleanValue(),
          node.required("host").textValue(),
          node.required("application").textValue(),
          Option(node.get("base")).map(_.textValue())
        )
      } catch {
        case NonFatal(e) => throw DstlErrors.damagedCommitEntry(entry, e.getMessage, e)
      }
    }
  }

  /** The state store checkpoint ids in a commit entry (checkpoint format version 2): operator -> partition -> ids. */
  def checkpointIds(entry: Path, content: Array[Byte]): Seq[(Long, Int, String)] =
    try {
      val lines = new String(content, UTF_8).split('\n')
      val ids = mapper.readTree(lines(1)).path("stateUniqueIds")
      for {
        operator <- ids.properties().asScala.toSeq
        (stores, partition) <- operator.getValue.elements().asScala.toSeq.zipWithIndex
        id <- stores.elements().asScala
      } yield (operator.getKey.toLong, partition, id.textValue())
    } catch {
      case NonFatal(e) => throw DstlErrors.damagedCommitEntry(entry, e.getMessage, e)
    }
}
