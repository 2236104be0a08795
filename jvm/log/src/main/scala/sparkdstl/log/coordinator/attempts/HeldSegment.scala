package sparkdstl.log.coordinator.attempts

import sparkdstl.log.format.{SegmentKey, SegmentPart}
import sparkdstl.log.transport.SealedPart

/**
 * One segment that one task attempt has sealed, and its state. Guarded by the ledger that holds it.
 *
 * @param attempt the task attempt; negative where a thread without a task has sealed it
 * @param executor that holds what is not durable
 */
private[coordinator] final class HeldSegment(
    val key: SegmentKey,
    val attempt: Long,
    val executor: String,
    sealedParts: Vector[SealedPart]
) {

  /** The store's directory. */
  def store: String = key.storeDirectory

  /** The tickets under which its executor reports. */
  val tickets: Vector[Long] = sealedParts.collect { case SealedPart.Pending(ticket, _) => ticket }

  /** The choice that depends on it, once its batch is closed. */
  var choice: Option[StoreChoice] = None

  private var parts = sealedParts
  private var places = Map.empty[Long, SegmentPart]
  private var why = "it is not durable"
  private var current: SealState = if (tickets.isEmpty) SealState.Durable else SealState.Sealed

  def state: SealState = current

  /** Its bytes that the driver holds. */
  def inlineBytes: Long = HeldSegment.inlineBytes(parts)

  /** Data files that are known to hold some of it. */
  def files: Iterator[String] =
    parts.iterator.collect { case SealedPart.Stored(part) => part }.flatMap(_.file) ++
      places.valuesIterator.flatMap(_.file)

  /** The upload of that ticket is durable. */
  def place(ticket: Long, part: SegmentPart): Unit = {
    places += ticket -> part
    if (places.size == tickets.size && current != SealState.Withdrawn) become(SealState.Durable)
  }

  /** It is lost if it is not durable, unless a report still arrives. */
  def lose(reason: String): Unit =
    if (current == SealState.Sealed || current == SealState.Lost) {
      why = reason
      become(SealState.Lost)
    }

  /** It does not count. Its bytes are released. */
  def withdraw(): Unit = {
    become(SealState.Withdrawn)
    parts = parts.filter { case _: SealedPart.Inline => false; case _ => true }
  }

  def whyLost: String = why

  /** Where all of it is; it must be durable. */
  def placed: Vector[Either[Array[Byte], SegmentPart]] = HeldSegment.placed(parts, places)

  private def become(state: SealState): Unit = current = SealState.next(current, state)
}

private[coordinator] object HeldSegment {

  /** Where parts are: inline, or in data files. `uploaded` has the places of those that are pending, by ticket. */
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
