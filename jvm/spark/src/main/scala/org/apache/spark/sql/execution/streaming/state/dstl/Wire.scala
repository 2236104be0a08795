package org.apache.spark.sql.execution.streaming.state.dstl

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.util.UUID

import sparkdstl.log.format.{RunHistory, RunRange, SegmentKey, SegmentPart}

/** A part of a sealed segment as the executor knows it. */
private[dstl] sealed trait SealedPart {
  def length: Long
}

private[dstl] object SealedPart {

  /** The bytes themselves: the driver writes them into the batch log. */
  final case class Inline(bytes: Array[Byte]) extends SealedPart {
    override def length: Long = bytes.length.toLong
  }

  /** Already in a data file. */
  final case class Stored(part: SegmentPart) extends SealedPart {
    override def length: Long = part.length.toLong
  }

  /** Waiting for upload on the executor, which will report under this ticket. */
  final case class Pending(ticket: Long, length: Long) extends SealedPart
}

/** What the driver says to a seal. */
private[dstl] sealed trait SealReply

private[dstl] object SealReply {
  case object Accepted extends SealReply

  /** The batch's budget for inline bytes is used up: upload them and seal again. */
  case object OverBudget extends SealReply

  final case class Refused(reason: String) extends SealReply
}

/** What the driver says to an executor that starts working for a run. */
private[dstl] sealed trait OpenReply

private[dstl] object OpenReply {

  /** The driver coordinates no query on this checkpoint. */
  case object Unknown extends OpenReply

  /** It does, but for another run. */
  case object Superseded extends OpenReply

  /**
   * @param history   the batches that are in the log
   * @param committed the last committed batch, -1 if there is none
   */
  final case class Current(history: RunHistory, committed: Long) extends OpenReply
}

private[dstl] final case class SealRequest(executor: String, key: SegmentKey, parts: Vector[SealedPart])

/** How an upload ended: the part's place, or why it failed. */
private[dstl] final case class UploadReport(executor: String, ticket: Long, result: Either[String, SegmentPart])

private[dstl] final case class ListedSegment(fileName: String, length: Long, modifiedAtMs: Long)

/**
 * The bytes of messages between executors and driver.
 *
 * Messages consist of JDK classes only, because an executor's RPC deserializer does not see classes from `spark.jars`;
 * and no object is deserialized from what was received.
 */
private[dstl] object Wire {

  /** A request: operation, checkpoint root, run, payload. */
  type Request = (String, String, String, Array[Byte])

  val Open = "dstl.open"
  val Seal = "dstl.seal"
  val Uploaded = "dstl.uploaded"
  val ListSegments = "dstl.list"
  val Release = "dstl.release"
  val Register = "dstl.register"
  val Flush = "dstl.flush"
  val LastBarrier = "dstl.barrier"

  val Done: Array[Byte] = Array.emptyByteArray

  def encodeSeal(seal: SealRequest): Array[Byte] = write { out =>
    out.writeUTF(seal.executor)
    writeKey(out, seal.key)
    out.writeInt(seal.parts.size)
    seal.parts.foreach {
      case SealedPart.Inline(bytes) =>
        out.writeByte(0)
        writeBytes(out, bytes)
      case SealedPart.Stored(part) =>
        out.writeByte(1)
        writePart(out, part)
      case SealedPart.Pending(ticket, length) =>
        out.writeByte(2)
        out.writeLong(ticket)
        out.writeLong(length)
    }
  }

  def decodeSeal(payload: Array[Byte]): SealRequest = read(payload) { in =>
    SealRequest(
      in.readUTF(),
      readKey(in),
      Vector.fill(in.readInt())(in.readByte() match {
        case 0 => SealedPart.Inline(readBytes(in))
        case 1 => SealedPart.Stored(readPart(in))
        case 2 => SealedPart.Pending(in.readLong(), in.readLong())
        case other => throw new IllegalArgumentException(s"unknown kind of part $other")
      })
    )
  }

  def encodeSealReply(reply: SealReply): Array[Byte] = write { out =>
    reply match {
      case SealReply.Accepted => out.writeByte(0)
      case SealReply.OverBudget => out.writeByte(1)
      case SealReply.Refused(reason) =>
        out.writeByte(2)
        out.writeUTF(reason)
    }
  }

  def decodeSealReply(payload: Array[Byte]): SealReply = read(payload) { in =>
    in.readByte() match {
      case 0 => SealReply.Accepted
      case 1 => SealReply.OverBudget
      case _ => SealReply.Refused(in.readUTF())
    }
  }

  def encodeOpenReply(reply: OpenReply): Array[Byte] = write { out =>
    reply match {
      case OpenReply.Unknown => out.writeByte(0)
      case OpenReply.Superseded => out.writeByte(1)
      case OpenReply.Current(history, committed) =>
        out.writeByte(2)
        out.writeLong(committed)
        out.writeInt(history.ranges.size)
        history.ranges.foreach { range =>
          out.writeLong(range.first)
          out.writeLong(range.last)
          out.writeUTF(range.run.toString)
        }
    }
  }

  def decodeOpenReply(payload: Array[Byte]): OpenReply = read(payload) { in =>
    in.readByte() match {
      case 0 => OpenReply.Unknown
      case 1 => OpenReply.Superseded
      case _ =>
        val committed = in.readLong()
        val ranges = Vector.fill(in.readInt())(RunRange(in.readLong(), in.readLong(), UUID.fromString(in.readUTF())))
        OpenReply.Current(RunHistory(ranges), committed)
    }
  }

  def encodeReport(report: UploadReport): Array[Byte] = write { out =>
    out.writeUTF(report.executor)
    out.writeLong(report.ticket)
    report.result match {
      case Left(reason) =>
        out.writeBoolean(false)
        writeBytes(out, reason.getBytes("UTF-8"))
      case Right(part) =>
        out.writeBoolean(true)
        writePart(out, part)
    }
  }

  def decodeReport(payload: Array[Byte]): UploadReport = read(payload) { in =>
    UploadReport(
      in.readUTF(),
      in.readLong(),
      if (in.readBoolean()) Right(readPart(in)) else Left(new String(readBytes(in), "UTF-8"))
    )
  }

  def encodeBarrier(barrier: Option[BarrierReport]): Array[Byte] = write { out =>
    out.writeBoolean(barrier.nonEmpty)
    barrier.foreach { report =>
      Seq(report.batch, report.waitMs, report.writeMs, report.bytes, report.segments.toLong).foreach(out.writeLong)
    }
  }

  def decodeBarrier(payload: Array[Byte]): Option[BarrierReport] = read(payload) { in =>
    if (in.readBoolean())
      Some(BarrierReport(in.readLong(), in.readLong(), in.readLong(), in.readLong(), in.readLong().toInt))
    else None
  }

  def encodeKey(key: SegmentKey): Array[Byte] = write(writeKey(_, key))

  def decodeKey(payload: Array[Byte]): SegmentKey = read(payload)(readKey)

  def encodeText(text: String): Array[Byte] = write(_.writeUTF(text))

  def decodeText(payload: Array[Byte]): String = read(payload)(_.readUTF())

  def encodeFlag(flag: Boolean): Array[Byte] = write(_.writeBoolean(flag))

  def decodeFlag(payload: Array[Byte]): Boolean = read(payload)(_.readBoolean())

  def encodeListing(segments: Seq[ListedSegment]): Array[Byte] = write { out =>
    out.writeInt(segments.size)
    segments.foreach { segment =>
      out.writeUTF(segment.fileName)
      out.writeLong(segment.length)
      out.writeLong(segment.modifiedAtMs)
    }
  }

  def decodeListing(payload: Array[Byte]): Seq[ListedSegment] = read(payload) { in =>
    Vector.fill(in.readInt())(ListedSegment(in.readUTF(), in.readLong(), in.readLong()))
  }

  private def writeKey(out: DataOutputStream, key: SegmentKey): Unit = {
    out.writeUTF(key.storeDirectory)
    out.writeUTF(key.fileName)
  }

  private def readKey(in: DataInputStream): SegmentKey = {
    val (directory, file) = (in.readUTF(), in.readUTF())
    SegmentKey.parse(directory, file)
      .getOrElse(throw new IllegalArgumentException(s"not a segment: $directory/$file"))
  }

  private def writePart(out: DataOutputStream, part: SegmentPart): Unit = {
    out.writeUTF(part.file.getOrElse(""))
    out.writeLong(part.offset)
    out.writeInt(part.length)
    out.writeInt(part.crc)
  }

  private def readPart(in: DataInputStream): SegmentPart =
    SegmentPart(Some(in.readUTF()).filter(_.nonEmpty), in.readLong(), in.readInt(), in.readInt())

  private def writeBytes(out: DataOutputStream, bytes: Array[Byte]): Unit = {
    out.writeInt(bytes.length)
    out.write(bytes)
  }

  private def readBytes(in: DataInputStream): Array[Byte] = {
    val length = in.readInt()
    if (length < 0 || length > in.available()) throw new IllegalArgumentException(s"$length bytes announced")
    in.readNBytes(length)
  }

  private def write(body: DataOutputStream => Unit): Array[Byte] = {
    val bytes = new ByteArrayOutputStream(256)
    val out = new DataOutputStream(bytes)
    body(out)
    out.flush()
    bytes.toByteArray
  }

  private def read[T](payload: Array[Byte])(body: DataInputStream => T): T =
    body(new DataInputStream(new ByteArrayInputStream(payload)))
}
