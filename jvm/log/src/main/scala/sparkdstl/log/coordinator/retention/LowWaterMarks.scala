package sparkdstl.log.coordinator.retention

import scala.collection.mutable

/**
 * The lowest version that each store retains, and the lowest of all live stores, which costs the same however many there
 * are. A store that has not told its mark has 0: it needs everything. Not thread-safe.
 */
private[coordinator] final class LowWaterMarks(stores: Set[String]) {
  import LowWaterMarks._

  private val marks = mutable.HashMap.empty[String, Mark]
  // How many live stores have a mark.
  private val counts = mutable.TreeMap.empty[Long, Int]
  private var live = 0

  setLive(stores)

  /** The lowest mark of a live store; 0 if there is none. */
  def lowest: Long = counts.headOption.fold(0L)(_._1)

  /** Whether there is no live store. */
  def isEmpty: Boolean = live == 0

  def of(store: String): Long = marks.get(store).fold(0L)(_.version)

  /** The store needs nothing below `version`. Marks never go down. */
  def raise(store: String, version: Long): Unit = {
    val mark = marks.getOrElseUpdate(store, new Mark)
    if (version > mark.version) {
      if (mark.isLive) uncount(mark)
      mark.version = version
      if (mark.isLive) count(mark)
    }
  }

  /** Forgets all stores but these. */
  def setLive(stores: Set[String]): Unit =
    if (stores.size != live || !stores.forall(marks.get(_).exists(_.isLive))) {
      marks.filterInPlace { (store, mark) =>
        val stays = stores(store)
        if (!stays && mark.isLive) uncount(mark)
        stays
      }
      stores.foreach { store =>
        val mark = marks.getOrElseUpdate(store, new Mark)
        if (!mark.isLive) {
          mark.isLive = true
          count(mark)
        }
      }
      live = stores.size
    }

  private def count(mark: Mark): Unit = counts.updateWith(mark.version)(before => Some(before.getOrElse(0) + 1)): Unit

  private def uncount(mark: Mark): Unit = counts.updateWith(mark.version)(_.map(_ - 1).filter(_ > 0)): Unit
}

private object LowWaterMarks {
  private final class Mark {
    var version = 0L
    var isLive = false
  }
}
