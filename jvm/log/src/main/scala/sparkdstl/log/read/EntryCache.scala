package sparkdstl.log.read

import java.util.concurrent.atomic.LongAdder

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Holds commit entries in memory while stores replay them, so that each is fetched once for all stores of an executor.
 * Bounded: the least recently used go first. An entry that is not there, or could not be read, is asked for again; also
 * by those who came while it was being asked for, because it may have been written since. Thread-safe.
 *
 * @tparam K
 *   what tells entries apart: not the batch alone, because a user who goes back lets another run commit it anew
 * @param initialBytes
 *   held at most, apart from entries that are being fetched; one that is larger is held alone
 */
final class EntryCache[K](initialBytes: Long, runtime: ProtocolRuntime) {
  import EntryCache._
  private implicit val executor: ExecutionContext = runtime.executor

  private final class Slot {
    val found: Promise[EntryFound] = Promise()
    var weight = 0L
    var usedNanos = 0L
  }

  // Guarded by this; in the order of use, the least recently used first.
  private val slots = mutable.LinkedHashMap.empty[K, Slot]
  private var held = 0L
  private var maxBytes = initialBytes

  private val found = new LongAdder
  private val fetched = new LongAdder

  /** Holds at least so much from now on, if there is so much. */
  def ensureAtLeast(bytes: Long): Unit = synchronized { maxBytes = math.max(maxBytes, bytes) }

  /** The entry of `key`, from memory or as `fetch` reads it from storage. */
  def get(key: K)(fetch: => Future[EntryFound]): Future[EntryFound] = {
    val (slot, isNew) = synchronized {
      val known = slots.remove(key)
      val slot = known.getOrElse(new Slot)
      slot.usedNanos = runtime.timer.nowNanos
      slots.put(key, slot)
      (slot, known.isEmpty)
    }
    (if (isNew) fetched else found).increment()
    if (isNew) begin(key, slot)(fetch)
    else slot.found.future.flatMap {
      // Asked for before this caller came. Whoever joins the next is told what is there after it came.
      case EntryFound.Absent =>
        forget(key, slot)
        val (next, isNext) = synchronized {
          val known = slots.get(key)
          val next = known.getOrElse(new Slot)
          if (known.isEmpty) slots.put(key, next)
          (next, known.isEmpty)
        }
        if (isNext) begin(key, next)(fetch) else next.found.future
      case found => Future.successful(found)
    }
  }

  private def begin(key: K, slot: Slot)(fetch: => Future[EntryFound]): Future[EntryFound] = {
    val fetched =
      try fetch
      catch { case NonFatal(error) => Future.failed(error) }
    fetched.onComplete { outcome =>
      outcome match {
        case Success(EntryFound.Logged(entry)) => arrived(key, slot, entry.weight)
        case Success(EntryFound.Plain) => arrived(key, slot, PlainWeight)
        case Success(EntryFound.Absent) | Failure(_) => forget(key, slot)
      }
      slot.found.complete(outcome)
    }
    slot.found.future
  }

  /** Whether the entry is held or being fetched. */
  def contains(key: K): Boolean = synchronized(slots.contains(key))

  /** Lets go of what nobody has wanted for `idleNanos`. */
  def forgetIdle(idleNanos: Long): Unit = synchronized {
    val now = runtime.timer.nowNanos
    val idle = slots.iterator.takeWhile { case (_, slot) => now - slot.usedNanos >= idleNanos }
      .filter { case (_, slot) => slot.weight > 0 }.toVector
    idle.foreach { case (key, slot) =>
      slots.remove(key)
      held -= slot.weight
    }
  }

  /** Bytes held now. */
  def weight: Long = synchronized(held)

  /** How often an entry was asked for that was held, or was being fetched for another. */
  def hits: Long = found.sum

  /** How often an entry had to be fetched. */
  def misses: Long = fetched.sum

  private def arrived(key: K, slot: Slot, weight: Long): Unit = synchronized {
    if (slots.get(key).exists(_ eq slot)) {
      slot.weight = weight
      held += weight
      var excess = held - maxBytes
      // What is being fetched has no weight yet.
      val victims =
        slots.iterator.filter { case (of, other) => of != key && other.weight > 0 }.takeWhile { case (_, other) =>
          val needed = excess > 0
          excess -= other.weight
          needed
        }.toVector
      victims.foreach { case (of, other) =>
        slots.remove(of)
        held -= other.weight
      }
    }
  }

  private def forget(key: K, slot: Slot): Unit = synchronized {
    if (slots.get(key).exists(_ eq slot)) slots.remove(key): Unit
  }
}

private object EntryCache {

  /** Roughly what it takes to know that an entry has no log, in bytes. */
  private val PlainWeight = 64L
}
