// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.attempts

import sparkdstl.log.format.{SegmentKey, SegmentPart}
import sparkdstl.log.transport.SealedPart

/** A sealed segment, and its state. `executor` holds its bytes until they are durable. Guarded by the ledger. */
private[coordinator] final class HeldSegment(
    val key: SegmentKey,
    val executor: String,
    sealedParts: Vector[SealedPart]
) {

  def store: String = key.storeDirectory
  val tickets: Vector[Long] = sealedParts.collect { case SealedPart.Pending(ticket, _) => ticket }

  /** The choice that has it as a candidate, after the batch was closed. */
  var choice: Option[StoreChoice] = None

  private var parts = sealedParts
  private var places = Map.empty[Long, SegmentPart]
  private var why = "it is not durable"
  private var current: SealState = if (tickets.isEmpty) SealState.Durable else SealState.Sealed

  def state: SealState = current
  def inlineBytes: Long = HeldSegment.inlineBytes(parts)

  /** Data files that hold parts of it, as far as reported. */
  def files: Iterator[String] =
    parts.iterator.collect { case SealedPart.Stored(part) => part }.flatMap(_.file) ++
      places.valuesIterator.flatMap(_.file)

  /** Records that the upload of a ticket is durable. */
  def place(ticket: Long, part: SegmentPart): Unit = {
    places += ticket -> part
    if (places.size == tickets.size && current != SealState.Withdrawn) become(SealState.Durable)
  }

  /** Marks it as lost unless it is durable. A late report can still make it durable. */
  def lose(reason: String): Unit =
    if (current == SealState.Sealed || current == SealState.Lost) {
      why = reason
      become(SealState.Lost)
    }

  def withdraw(): Unit = {
    become(SealState.Withdrawn)
    parts = parts.filter { case _: SealedPart.Inline => false; case _ => true }
  }

  def whyLost: String = why

  /** The places of all its parts. Requires that it is durable. */
  def placed: Vector[Either[Array[Byte], SegmentPart]] = HeldSegment.placed(parts, places)

  private def become(state: SealState): Unit = current = SealState.next(current, state)
}

private[coordinator] object HeldSegment {

  /** The places of parts: inline or in data files. `uploaded` has the places of pending parts, by ticket. */
  def placed(
      parts: Vector[SealedPart],
      uploaded: Map[Long, SegmentPart]
  ): Vector[Either[Array[Byte], SegmentPart]] = parts.map {
    case SealedPart.Inline(bytes) => Left(bytes)
    case SealedPart.Stored(part) => Right(part)
    case SealedPart.Pending(ticket, _) => Right(uploaded(ticket))
  }

  def inlineBytes(parts: Iterable[SealedPart]): Long =
    parts.iterator.collect { case SealedPart.Inline(bytes) => bytes.length.toLong }.sum
}
