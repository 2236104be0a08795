package sparkdstl.log.transport

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.nio.charset.StandardCharsets.UTF_8

import sparkdstl.log.format.{SegmentKey, SegmentKind, SegmentPart}

/**
 * The bytes of messages. What is received is parsed strictly, and lengths are checked before memory is taken: no object is
 * deserialized.
 *
 * Decoding fails with `IllegalArgumentException` or `EOFException` on bytes that are no message.
 */
object MessageCodec {

  def encode(message: ToDriver): Array[Byte] = write { out =>
    message match {
      case ToDriver.Open => out.writeByte(0)
      case ToDriver.Seal(attempt, batch, segments, carried) =>
        out.writeByte(1)
        out.writeLong(attempt)
        out.writeLong(batch)
        Seq(segments, carried).foreach { some =>
          out.writeInt(some.size)
          some.foreach(writeSegment(out, _))
        }
      case ToDriver.Withdraw(attempt, batch) =>
        out.writeByte(2)
        out.writeLong(attempt)
        out.writeLong(batch)
      case ToDriver.Uploaded(results) =>
        out.writeByte(3)
        out.writeInt(results.size)
        results.foreach { case (ticket, result) =>
          out.writeLong(ticket)
          out.writeBoolean(result.isRight)
          result.fold(writeText(out, _), writePart(out, _))
        }
      case ToDriver.Release(lowest) =>
        out.writeByte(4)
        out.writeInt(lowest.size)
        lowest.foreach { case (store, version) =>
          writeText(out, store)
          out.writeLong(version)
        }
      case ToDriver.ListStore(storeDirectory) =>
        out.writeByte(5)
        writeText(out, storeDirectory)
      case ToDriver.Bypass(why) =>
        out.writeByte(6)
        writeText(out, why)
    }
  }

  def decodeToDriver(bytes: Array[Byte]): ToDriver = read(bytes) { in =>
    in.readByte() match {
      case 0 => ToDriver.Open
      case 1 => readSeal(in)
      case 2 => ToDriver.Withdraw(in.readLong(), in.readLong())
      case 3 => ToDriver.Uploaded(many(in, 10) {
          in.readLong() -> (if (in.readBoolean()) Right(readPart(in)) else Left(readText(in)))
        })
      case 4 => ToDriver.Release(many(in, 12)((readText(in), in.readLong())))
      case 5 => ToDriver.ListStore(readText(in))
      case 6 => ToDriver.Bypass(readText(in))
      case other => throw unknown(other)
    }
  }

  def encode(message: FromDriver): Array[Byte] = write { out =>
    message match {
      case FromDriver.Opened(accumulator, epoch, inlineShare) =>
        out.writeByte(0)
        Seq(accumulator, epoch, inlineShare).foreach(out.writeLong)
      case FromDriver.NotCoordinated => out.writeByte(1)
      case FromDriver.Superseded => out.writeByte(2)
      case FromDriver.Accepted(barrier, notTaken) =>
        out.writeByte(3)
        out.writeBoolean(barrier.nonEmpty)
        barrier.foreach(writeBarrier(out, _))
        out.writeInt(notTaken.size)
        notTaken.foreach { case (store, missing) =>
          writeText(out, store)
          out.writeInt(missing.size)
          missing.foreach(writeText(out, _))
        }
      case FromDriver.OverBudget => out.writeByte(4)
      case FromDriver.Refused(reason, stale) =>
        out.writeByte(5)
        writeText(out, reason)
        out.writeInt(stale.size)
        stale.foreach(writeText(out, _))
      case FromDriver.Withdrawal(mayBeCommitted) =>
        out.writeByte(6)
        out.writeBoolean(mayBeCommitted)
      case FromDriver.Versions(changelogs, snapshots, plainUpTo, lowest) =>
        out.writeByte(7)
        out.writeInt(changelogs.size)
        changelogs.foreach(out.writeLong)
        out.writeInt(snapshots.size)
        snapshots.foreach { snapshot =>
          out.writeLong(snapshot.version)
          out.writeLong(snapshot.batch)
          out.writeBoolean(snapshot.id.nonEmpty)
          snapshot.id.foreach(writeText(out, _))
        }
        out.writeLong(plainUpTo)
        out.writeLong(lowest)
      case FromDriver.Noted => out.writeByte(8)
      case FromDriver.Unwanted(tickets) =>
        out.writeByte(9)
        out.writeInt(tickets.size)
        tickets.foreach(out.writeLong)
    }
  }

  def decodeFromDriver(bytes: Array[Byte]): FromDriver = read(bytes) { in =>
    in.readByte() match {
      case 0 => FromDriver.Opened(in.readLong(), in.readLong(), in.readLong())
      case 1 => FromDriver.NotCoordinated
      case 2 => FromDriver.Superseded
      case 3 =>
        FromDriver.Accepted(
          Option.when(in.readBoolean())(readBarrier(in)),
          many(in, 8)((readText(in), many(in, 4)(readText(in))))
        )
      case 4 => FromDriver.OverBudget
      case 5 => FromDriver.Refused(readText(in), many(in, 4)(readText(in)))
      case 6 => FromDriver.Withdrawal(in.readBoolean())
      case 7 =>
        FromDriver.Versions(many(in, 8)(in.readLong()), many(in, 17)(readPlace(in)), in.readLong(), in.readLong())
      case 8 => FromDriver.Noted
      case 9 => FromDriver.Unwanted(many(in, 8)(in.readLong()))
      case other => throw unknown(other)
    }
  }

  def encode(message: ToExecutor): Array[Byte] = write { out =>
    message match {
      case ToExecutor.Flush => out.writeByte(0)
      case ToExecutor.Drop(attempt, storeDirectories) =>
        out.writeByte(1)
        out.writeLong(attempt)
        out.writeInt(storeDirectories.size)
        storeDirectories.foreach(writeText(out, _))
    }
  }

  def decodeToExecutor(bytes: Array[Byte]): ToExecutor = read(bytes) { in =>
    in.readByte() match {
      case 0 => ToExecutor.Flush
      case 1 => ToExecutor.Drop(in.readLong(), many(in, 4)(readText(in)))
      case other => throw unknown(other)
    }
  }

  private def writeSegment(out: DataOutputStream, segment: SealedSegment): Unit = {
    writeText(out, segment.key.storeDirectory)
    writeText(out, segment.key.fileName)
    out.writeBoolean(segment.base.nonEmpty)
    segment.base.foreach(out.writeLong)
    out.writeInt(segment.parts.size)
    segment.parts.foreach {
      case SealedPart.Inline(bytes) =>
        out.writeByte(0)
        out.writeInt(bytes.length)
        out.write(bytes)
      case SealedPart.Stored(part) =>
        out.writeByte(1)
        writePart(out, part)
      case SealedPart.Pending(ticket, length) =>
        out.writeByte(2)
        out.writeLong(ticket)
        out.writeLong(length)
    }
  }

  private def readSeal(in: DataInputStream): ToDriver.Seal = {
    val seal = ToDriver.Seal(in.readLong(), in.readLong(), many(in, 13)(readSegment(in)), many(in, 13)(readSegment(in)))
    seal.carried.groupBy(_.key.storeDirectory).foreach { case (_, segments) =>
      val (zips, files) = segments.partition(_.key.kind == SegmentKind.Snapshot)
      val isWhole = zips.size == 1 && zips.head.key.batch < seal.batch &&
        files.forall(_.key.kind == SegmentKind.SnapshotFile) &&
        segments.forall(_.parts.forall { case _: SealedPart.Pending => false; case _ => true })
      if (!isWhole) throw new IllegalArgumentException(s"${segments.map(_.key.relativePath)} is no snapshot")
    }
    seal
  }

  private def readPlace(in: DataInputStream): SnapshotPlace = {
    val (version, batch) = (in.readLong(), in.readLong())
    SnapshotPlace(version, Option.when(in.readBoolean())(readText(in)), batch)
  }

  private def readSegment(in: DataInputStream): SealedSegment = {
    val (directory, file) = (readText(in), readText(in))
    val key = SegmentKey.parse(directory, file)
      .getOrElse(throw new IllegalArgumentException(s"not a segment: $directory/$file"))
    SealedSegment(
      key,
      Option.when(in.readBoolean())(in.readLong()),
      many(in, 5) {
        in.readByte() match {
          case 0 => SealedPart.Inline(readBytes(in))
          case 1 => SealedPart.Stored(readPart(in))
          case 2 => SealedPart.Pending(in.readLong(), in.readLong())
          case other => throw unknown(other)
        }
      }
    )
  }

  private def writePart(out: DataOutputStream, part: SegmentPart): Unit = {
    writeText(out, part.file.getOrElse(""))
    out.writeLong(part.offset)
    out.writeInt(part.length)
    out.writeInt(part.crc)
  }

  private def readPart(in: DataInputStream): SegmentPart =
    SegmentPart(Some(readText(in)).filter(_.nonEmpty), in.readLong(), in.readInt(), in.readInt())

  private def writeBarrier(out: DataOutputStream, report: BarrierReport): Unit = {
    Seq(
      report.batch,
      report.waitMillis,
      report.writeMillis,
      report.entryBytes,
      report.inlineBytes,
      report.uploadedBytes,
      report.logBytes,
      report.snapshotBytes
    ).foreach(out.writeLong)
    out.writeInt(report.segments)
    out.writeInt(report.snapshots)
  }

  private def readBarrier(in: DataInputStream): BarrierReport = BarrierReport(
    in.readLong(),
    in.readLong(),
    in.readLong(),
    in.readLong(),
    in.readLong(),
    in.readLong(),
    in.readLong(),
    in.readLong(),
    in.readInt(),
    in.readInt()
  )

  private def writeText(out: DataOutputStream, text: String): Unit = {
    val bytes = text.getBytes(UTF_8)
    out.writeInt(bytes.length)
    out.write(bytes)
  }

  private def readText(in: DataInputStream): String = new String(readBytes(in), UTF_8)

  private def readBytes(in: DataInputStream): Array[Byte] = {
    val length = in.readInt()
    if (length < 0 || length > in.available()) throw new IllegalArgumentException(s"$length bytes announced")
    in.readNBytes(length)
  }

  /** A count and so many values, of which each takes `minimumSize` bytes or more. */
  private def many[T](in: DataInputStream, minimumSize: Int)(value: => T): Vector[T] = {
    val count = in.readInt()
    if (count < 0 || count > in.available() / minimumSize)
      throw new IllegalArgumentException(s"$count values announced where ${in.available()} bytes are left")
    Vector.fill(count)(value)
  }

  private def unknown(code: Byte): IllegalArgumentException = new IllegalArgumentException(s"unknown message $code")

  private def write(body: DataOutputStream => Unit): Array[Byte] = {
    val bytes = new ByteArrayOutputStream(256)
    val out = new DataOutputStream(bytes)
    body(out)
    out.flush()
    bytes.toByteArray
  }

  private def read[T](bytes: Array[Byte])(body: DataInputStream => T): T = {
    val in = new DataInputStream(new ByteArrayInputStream(bytes))
    val message = body(in)
    if (in.available() > 0) throw new IllegalArgumentException(s"${in.available()} bytes after the message")
    message
  }
}
