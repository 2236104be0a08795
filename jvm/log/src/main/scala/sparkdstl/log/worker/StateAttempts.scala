package sparkdstl.log.worker

import scala.collection.mutable

/** The task attempts whose commits led to a store's local versions, and those of them that do not count. Thread-safe. */
final class StateAttempts {
  private final val Remembered = 16
  // Guarded by this.
  private val attempts = mutable.LinkedHashMap.empty[Long, Long]
  private val dropped = mutable.HashSet.empty[Long]

  def of(version: Long): Option[Long] = synchronized(attempts.get(version))

  /** What the attempt left is not to be built on. */
  def drop(attempt: Long): Unit = synchronized {
    if (attempts.valuesIterator.contains(attempt)) dropped += attempt: Unit
  }

  def isDropped(attempt: Long): Boolean = synchronized(dropped(attempt))

  def remember(version: Long, attempt: Long): Unit = synchronized {
    attempts.put(version, attempt)
    if (attempts.size > Remembered) {
      attempts.remove(attempts.head._1)
      dropped.filterInPlace(attempt => attempts.valuesIterator.contains(attempt)): Unit
    }
  }

  /** That version and later ones are not here any more. */
  def forgetFrom(version: Long): Unit = synchronized(attempts.filterInPlace((of, _) => of < version)): Unit
}
