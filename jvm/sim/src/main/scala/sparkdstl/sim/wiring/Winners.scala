package sparkdstl.sim.wiring

import scala.collection.mutable

import sparkdstl.log.format.SegmentKey
import sparkdstl.log.transport.RunId

/** Which attempts led to the committed versions of stores: for flaws alone, which need to know. */
private[wiring] final class Winners {
  private val stores = mutable.Map.empty[(RunId, Long), Set[String]].withDefaultValue(Set.empty)
  private val attempts = mutable.Map.empty[(RunId, String, Long), Long]

  def wrote(run: RunId, attempt: Long, keys: Seq[SegmentKey]): Unit =
    stores((run, attempt)) = stores((run, attempt)) ++ keys.map(_.storeDirectory)

  /** @param reported in the order in which Spark has taken them */
  def committed(run: RunId, batch: Long, reported: Seq[Long]): Unit =
    for (attempt <- reported; store <- stores((run, attempt))) attempts((run, store, batch + 1)) = attempt

  /** The attempt that led to the version of that snapshot. */
  def of(run: RunId, snapshot: SegmentKey): Option[Long] =
    attempts.get((run, snapshot.storeDirectory, snapshot.version))
}
