// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.transport

import sparkdstl.log.format.{Codec, SegmentKey, SegmentKind, SegmentPart}
import sparkdstl.log.format.Codec._

/**
 * Encodes messages. Decoding is strict and does not use Java serialization.
 *
 * It fails with `IllegalArgumentException` on invalid bytes.
 */
object MessageCodec {
  def encode(message: ToDriver): Array[Byte] = toDriver.encode(message)
  def encode(message: FromDriver): Array[Byte] = fromDriver.encode(message)
  def encode(message: ToExecutor): Array[Byte] = toExecutor.encode(message)

  def decodeToDriver(bytes: Array[Byte]): ToDriver = toDriver.decode(bytes)
  def decodeFromDriver(bytes: Array[Byte]): FromDriver = fromDriver.decode(bytes)
  def decodeToExecutor(bytes: Array[Byte]): ToExecutor = toExecutor.decode(bytes)

  private val texts: Codec[Vector[String]] = vector(text)

  private val part: Codec[SegmentPart] = of4(text, signed, fixed32, fixed32)((file, offset, length, crc) =>
    SegmentPart(Some(file).filter(_.nonEmpty), offset, length, crc)
  )(part => Some((part.file.getOrElse(""), part.offset, part.length, part.crc)))

  private val sealedPart: Codec[SealedPart] = oneOf[SealedPart](
    kind(bytes.as(SealedPart.Inline(_))(_.bytes)),
    kind(part.as(SealedPart.Stored(_))(_.part)),
    kind(of2(signed, signed)(SealedPart.Pending(_, _))(SealedPart.Pending.unapply))
  )

  private val key: Codec[SegmentKey] = pair(text, text).as { case (directory, file) =>
    SegmentKey.parse(directory, file).getOrElse(throw new IllegalArgumentException(s"not a segment: $directory/$file"))
  }(key => (key.storeDirectory, key.fileName))

  private val segment: Codec[SealedSegment] =
    of3(key, option(signed), vector(sealedPart))(SealedSegment(_, _, _))(SealedSegment.unapply)

  private val seal: Codec[ToDriver.Seal] =
    of4(signed, signed, vector(segment), vector(segment))(ToDriver.Seal(_, _, _, _))(ToDriver.Seal.unapply)
      .as(withWholeSnapshots)(identity)

  private val uploaded: Codec[Either[String, SegmentPart]] = oneOf[Either[String, SegmentPart]](
    kind(text.as(Left[String, SegmentPart](_))(_.value)),
    kind(part.as(Right[String, SegmentPart](_))(_.value))
  )

  private val toDriver: Codec[ToDriver] = oneOf[ToDriver](
    only(ToDriver.Open),
    kind(seal),
    kind(of2(signed, signed)(ToDriver.Withdraw(_, _))(ToDriver.Withdraw.unapply)),
    kind(vector(pair(signed, uploaded)).as(ToDriver.Uploaded(_))(_.results)),
    kind(vector(pair(text, signed)).as(ToDriver.Release(_))(_.lowest)),
    kind(text.as(ToDriver.ListStore(_))(_.storeDirectory)),
    kind(text.as(ToDriver.Bypass(_))(_.why))
  )

  private val four = pair(pair(signed, signed), pair(signed, signed))

  private val barrier: Codec[BarrierReport] =
    pair(pair(four, four), pair(fixed32, fixed32)).as {
      case ((((batch, wait), (write, entry)), ((inline, uploaded), (log, snapshot))), (segments, snapshots)) =>
        BarrierReport(batch, wait, write, entry, inline, uploaded, log, snapshot, segments, snapshots)
    } { of =>
      val times = ((of.batch, of.waitMillis), (of.writeMillis, of.entryBytes))
      val bytes = ((of.inlineBytes, of.uploadedBytes), (of.logBytes, of.snapshotBytes))
      ((times, bytes), (of.segments, of.snapshots))
    }

  private val snapshot: Codec[SnapshotPlace] =
    of3(signed, option(text), signed)(SnapshotPlace(_, _, _))(SnapshotPlace.unapply)

  private val versions: Codec[FromDriver.Versions] =
    of4(vector(signed), vector(snapshot), signed, signed)(FromDriver.Versions(_, _, _, _))(FromDriver.Versions.unapply)

  private val lengths: Codec[Map[Long, Long]] = vector(pair(signed, signed)).as(_.toMap)(_.toVector)

  private val fromDriver: Codec[FromDriver] = oneOf[FromDriver](
    kind(of4(signed, signed, signed, lengths)(FromDriver.Opened(_, _, _, _))(FromDriver.Opened.unapply)),
    only(FromDriver.NotCoordinated),
    only(FromDriver.Superseded),
    kind(of2(option(barrier), vector(pair(text, texts)))(FromDriver.Accepted(_, _))(FromDriver.Accepted.unapply)),
    only(FromDriver.OverBudget),
    kind(of2(text, texts)(FromDriver.Refused(_, _))(FromDriver.Refused.unapply)),
    kind(boolean.as(FromDriver.Withdrawal(_))(_.mayBeCommitted)),
    kind(versions),
    only(FromDriver.Noted),
    kind(vector(signed).as(FromDriver.Unwanted(_))(_.tickets)),
    kind(of2(text, text)(FromDriver.NotPlanned(_, _))(FromDriver.NotPlanned.unapply(_)))
  )

  private val toExecutor: Codec[ToExecutor] = oneOf[ToExecutor](
    only(ToExecutor.Flush),
    kind(of2(signed, texts)(ToExecutor.Drop(_, _))(ToExecutor.Drop.unapply))
  )

  /** Checks that each carried snapshot has one zip of an earlier version, and that its parts are inline or stored. */
  private def withWholeSnapshots(seal: ToDriver.Seal): ToDriver.Seal = {
    seal.carried.groupBy(_.key.storeDirectory).foreach { case (_, segments) =>
      val (zips, files) = segments.partition(_.key.kind == SegmentKind.Snapshot)
      val isWhole = zips.size == 1 && zips.head.key.batch < seal.batch &&
        files.forall(_.key.kind == SegmentKind.SnapshotFile) &&
        segments.forall(_.parts.forall { case _: SealedPart.Pending => false; case _ => true })
      if (!isWhole) throw new IllegalArgumentException(s"${segments.map(_.key.relativePath)} is no snapshot")
    }
    seal
  }
}
