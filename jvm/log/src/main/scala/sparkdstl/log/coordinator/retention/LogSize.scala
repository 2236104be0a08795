package sparkdstl.log.coordinator.retention

import scala.collection.mutable

/**
 * How large the log of a query is: the commit entries that stand, and the changes that they name in data files. Snapshots in data files
 * are not part of it: the log is what they make superfluous. Thread-safe.
 *
 * @param atStart
 *   bytes of each entry that was there when the run began. What these name in data files is not counted: they would have to be read for it
 */
private[coordinator] final class LogSize(atStart: Map[Long, Long]) {
  // Guarded by this. By batch.
  private val sizes = mutable.HashMap.from(atStart)

  /**
   * This run has committed `batch`, with so many bytes in its entry and in data files. Only `batch` and what else stands now is
   * remembered.
   *
   * @return
   *   how large the log is
   */
  def committed(batch: Long, bytes: Long, standing: Iterable[Long]): Long = synchronized {
    val still = standing.toSet + batch
    sizes.update(batch, bytes)
    sizes.filterInPlace((of, _) => still(of))
    sizes.valuesIterator.sum
  }

  /** How large the log is if these are the entries that stand. */
  def bytes(standing: Iterable[Long]): Long = synchronized(standing.iterator.flatMap(sizes.get).sum)
}
