package sparkdstl.log.read

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}
import scala.util.{Failure, Success}

import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Holds commit entries in memory while stores replay them, so that each is fetched once for all stores of an executor.
 * Bounded: the least recently used go first. An entry that is not there, or could not be read, is asked for again.
 * Thread-safe.
 *
 * @tparam K
 *   what tells entries apart: not the batch alone, because a user who goes back lets another run commit it anew
 * @param maxBytes
 *   held at most, apart from entries that are being fetched
 */
final class EntryCache[K](maxBytes: Long, runtime: ProtocolRuntime) {
  private implicit val executor: ExecutionContext = runtime.executor

  private final class Slot(val entry: Future[EntryFound]) {
    var weight = 0L
  }

  // Guarded by this; in the order of use, the least recently used first.
  private val slots = mutable.LinkedHashMap.empty[K, Slot]
  private var held = 0L

  /** The entry of `key`, from memory or as `fetch` reads it from storage. */
  def get(key: K)(fetch: => Future[EntryFound]): Future[EntryFound] = {
    val (slot, isNew) = synchronized {
      slots.remove(key) match {
        case Some(known) =>
          slots.put(key, known)
          (known, false)
        case None =>
          val made = new Slot(fetch)
          slots.put(key, made)
          (made, true)
      }
    }
    if (isNew) slot.entry.onComplete {
      case Success(EntryFound.Logged(entry)) => arrived(key, slot, entry.weight)
      case Success(EntryFound.Plain) => arrived(key, slot, 64)
      case Success(EntryFound.Absent) | Failure(_) => forget(key, slot)
    }
    slot.entry
  }

  /** Whether the entry is held or being fetched. */
  def contains(key: K): Boolean = synchronized(slots.contains(key))

  /** Forgets everything. */
  def clear(): Unit = synchronized {
    slots.clear()
    held = 0
  }

  /** Bytes held now. */
  def weight: Long = synchronized(held)

  private def arrived(key: K, slot: Slot, weight: Long): Unit = synchronized {
    if (slots.get(key).exists(_ eq slot)) {
      slot.weight = weight
      held += weight
      val excess = slots.iterator.takeWhile { case (of, _) => held > maxBytes && of != key }.toVector
      excess.foreach { case (of, other) =>
        if (held > maxBytes && other.weight > 0) {
          slots.remove(of)
          held -= other.weight
        }
      }
    }
  }

  private def forget(key: K, slot: Slot): Unit = synchronized {
    if (slots.get(key).exists(_ eq slot)) slots.remove(key): Unit
  }
}
