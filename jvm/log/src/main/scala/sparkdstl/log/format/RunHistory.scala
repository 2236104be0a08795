package sparkdstl.log.format

import java.util.UUID

/** The batches `first` to `last` (inclusive) were committed by `run`, each with a batch log of that run. */
final case class RunRange(first: Long, last: Long, run: UUID) {
  require(first >= 0 && first <= last, s"not a range of batches: $first to $last")
}

/**
 * Which run's batch log is the one that counts, for every batch that is still in the log.
 *
 * Batch logs are named after batch and run, and the commit entry of a batch decides which run's counts. A batch log
 * repeats the decision for all batches before it, so that a reader who knows the last commit entry knows them all.
 * Batches outside all ranges were committed without a batch log: their changelogs are plain files.
 *
 * @param ranges ascending, disjoint
 */
final case class RunHistory(ranges: Vector[RunRange]) {
  require(
    ranges.isEmpty || ranges.zip(ranges.tail).forall { case (a, b) => a.last < b.first },
    s"ranges must ascend: ${ranges.mkString(", ")}"
  )

  def runOf(batch: Long): Option[UUID] =
    ranges.reverseIterator.find(range => range.first <= batch && batch <= range.last).map(_.run)

  /** This history with `batch` committed by `run`; batches at or after it that were known before are forgotten. */
  def append(batch: Long, run: UUID): RunHistory = {
    val before = upTo(batch - 1).ranges
    before.lastOption match {
      case Some(range) if range.run == run && range.last == batch - 1 =>
        RunHistory(before.init :+ range.copy(last = batch))
      case _ => RunHistory(before :+ RunRange(batch, batch, run))
    }
  }

  /** Only the batches up to `batch`, inclusive. */
  def upTo(batch: Long): RunHistory =
    RunHistory(ranges.filter(_.first <= batch).map(range => range.copy(last = math.min(range.last, batch))))

  /** Only the batches from `batch` on, inclusive. */
  def from(batch: Long): RunHistory =
    RunHistory(ranges.filter(_.last >= batch).map(range => range.copy(first = math.max(range.first, batch))))

  def batches: Iterator[(Long, UUID)] =
    ranges.iterator.flatMap(range => (range.first to range.last).iterator.map(_ -> range.run))
}

object RunHistory {
  val empty: RunHistory = RunHistory(Vector.empty)
}
