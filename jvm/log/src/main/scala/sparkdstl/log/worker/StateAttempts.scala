// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import scala.collection.mutable

/** The task attempts whose commits produced a store's local versions, and which of them lost. Thread-safe. */
final class StateAttempts {
  private final val Remembered = 16
  // Guarded by this.
  private val attempts = mutable.LinkedHashMap.empty[Long, Long]
  private val dropped = mutable.HashSet.empty[Long]

  def of(version: Long): Option[Long] = synchronized(attempts.get(version))

  /** Marks the attempt's local versions as not committed. */
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

  def forgetFrom(version: Long): Unit = synchronized(attempts.filterInPlace((of, _) => of < version)): Unit
}
