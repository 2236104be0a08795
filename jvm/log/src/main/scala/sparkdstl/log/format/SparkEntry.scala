// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.json.JsonWriteFeature
import com.fasterxml.jackson.databind.json.JsonMapper
import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors

/** The part of a commit entry before its log: Spark's two lines, and a note for people. */
private[log] object SparkEntry {

  /** Spark's reader decodes so many characters after its lines, and fails on bytes of a log: padding separates them. */
  val Distance = 2048

  /**
   * Stands behind the version in the first line of an entry of a state that needs changes in the log. Spark takes the line for a
   * version that it does not know, and shows it. Without this project's file manager a query so fails before it deletes older
   * entries, of whose changes there may be no snapshot.
   */
  private val Guard =
    " with changes of state in spark-dstl's log. The file is sound: start with the jar of spark-dstl and " +
      "spark.sql.streaming.checkpointFileManagerClass=" +
      "org.apache.spark.sql.execution.streaming.state.dstl.DstlCheckpointFileManager"

  private val NoteBeginning = """{"dstl":"""
  private val RepartitionBeginning = """{"repartition": 1,"""
  private val LockBeginning = "dstl repartition".getBytes(US_ASCII)
  private val mapper = JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build()

  /** `content` with the note as its third line, padded for a log that follows, and with the guard if the state needs a log. */
  def withNote(
      content: Array[Byte],
      batch: Long,
      link: EntryLink,
      writer: Writer,
      base: Option[String],
      needsLog: Boolean
  ): Array[Byte] = {
    val lines = withoutLineEnd(content)
    val breaks = lines.count(_ == '\n')
    require(breaks == 1, s"Spark's commit entry of batch $batch has ${breaks + 1} lines, not 2")
    val text = note(batch, link, writer, base)
    val line = s"\n$text${" " * (Distance - 1 - text.length)}\n"
    val (version, second) = lines.splitAt(lines.indexOf('\n'.toByte))
    val guard = if (needsLog) Guard.getBytes(US_ASCII) else Array.emptyByteArray
    version ++ guard ++ second ++ line.getBytes(US_ASCII)
  }

  /** The beginning of an entry as Spark can read it: without the guard, and then without what is behind Spark's lines. */
  def withoutGuard(content: Array[Byte]): Array[Byte] = {
    val lines = linesIn(content)
    val (first, second) = lines.splitAt(lines.indexOf('\n'.toByte))
    val version = first.indexOf(' '.toByte)
    if (version < 0) content else first.take(version) ++ second
  }

  /** Whether its first line has the guard. */
  def hasGuard(content: Array[Byte]): Boolean = content.takeWhile(_ != '\n').contains(' '.toByte)

  private def linesIn(content: Array[Byte]): Array[Byte] = {
    val end = content.indexOf('\n'.toByte, content.indexOf('\n'.toByte) + 1)
    if (end < 0) content else content.take(end)
  }

  private def note(batch: Long, link: EntryLink, writer: Writer, base: Option[String]): String = {
    val node = mapper.createObjectNode()
    node.put("dstl", LogFile.FormatVersion).put("run", writer.run.toString).put("epoch", writer.epoch)
    node.put("entry", link.entry.toString)
    link.previous.foreach(previous => node.put("previous", previous.toString))
    node.put("host", writer.host).put("application", writer.application).put("batch", batch)
    base.foreach(node.put("base", _))
    mapper.writeValueAsString(node)
  }

  private def withoutLineEnd(content: Array[Byte]): Array[Byte] = {
    val end = content.lastIndexWhere(byte => byte != '\n' && byte != '\r') + 1
    if (end == content.length) content else content.take(end)
  }

  /** Whether it begins with Spark's two lines: the version, and another one. */
  def hasLines(content: Array[Byte]): Boolean = {
    val second = content.indexOf('\n'.toByte) + 1
    content.headOption.contains('v'.toByte) && second > 0 && second < content.length
  }

  /** Whether it is what `dstl repartition` writes into `offsets` so that no query starts meanwhile. */
  def isLock(content: Array[Byte]): Boolean = content.startsWith(LockBeginning)

  /** Whether a log followed when it was written: its first line has the guard, or its third is the note, or begins as it does. */
  def hadLog(content: Array[Byte]): Boolean = {
    val second = content.indexOf('\n'.toByte, content.indexOf('\n'.toByte) + 1)
    val third = new String(content.slice(second + 1, second + 1 + NoteBeginning.length), US_ASCII)
    hasGuard(content) || second >= 0 && third.nonEmpty && NoteBeginning.startsWith(third)
  }

  /**
   * The content of the entry of `offsets` that a repartition has put into its commit entry, which it creates before; None for other
   * entries.
   */
  def offsetsOfRepartition(content: Array[Byte]): Option[Array[Byte]] =
    new String(content, UTF_8).split("\n", 4).lift(2).filter(_.startsWith(RepartitionBeginning)).flatMap { line =>
      Try(mapper.readTree(line).path("offsets")).toOption.filter(_.isTextual).map(_.textValue().getBytes(UTF_8))
    }

  /** The state store checkpoint ids in the second line: operator, partition, id. */
  def checkpointIds(entry: Path, content: Array[Byte]): Seq[(Long, Int, String)] =
    try {
      val lines = new String(linesIn(content), UTF_8).split('\n')
      for {
        operator <- mapper.readTree(lines(1)).path("stateUniqueIds").properties().asScala.toVector
        (stores, partition) <- operator.getValue.elements().asScala.toVector.zipWithIndex
        id <- stores.elements().asScala
      } yield (operator.getKey.toLong, partition, id.textValue())
    } catch {
      case NonFatal(e) => throw LogErrors.damaged(entry, 0, s"its second line is not Spark's: ${e.getMessage}", e)
    }
}
