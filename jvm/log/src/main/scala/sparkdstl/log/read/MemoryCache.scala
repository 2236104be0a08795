package sparkdstl.log.read

import java.util.concurrent.atomic.LongAdder

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.control.NonFatal

import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Holds what was read in memory while stores are rebuilt, so that each object is fetched once for all stores of an
 * executor. Bounded: the least recently used go first. What could not be read, or what cannot be held, is asked for
 * again; also by those who came while it was being asked for, because it may have been written since. Thread-safe.
 *
 * @tparam K
 *   what tells objects apart
 * @param initialBytes
 *   held at most, apart from what is being fetched; one object that is larger is held alone
 * @param weightOf
 *   the bytes that an object takes; None if it cannot be held
 */
final class MemoryCache[K, V](initialBytes: Long, runtime: ProtocolRuntime)(weightOf: V => Option[Long]) {
  private implicit val executor: ExecutionContext = runtime.executor

  private final class Slot {
    val found: Promise[V] = Promise()
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

  /** The object of `key`, from memory or as `fetch` reads it. */
  def get(key: K)(fetch: => Future[V]): Future[V] = {
    val (slot, isNew) = use(key)
    (if (isNew) fetched else found).increment()
    if (isNew) begin(key, slot)(fetch)
    else slot.found.future.flatMap {
      // Asked for before this caller came. Whoever joins the next is told what is there after it came.
      case unheld if weightOf(unheld).isEmpty =>
        forget(key, slot)
        val (next, isNext) = use(key)
        if (isNext) begin(key, next)(fetch) else next.found.future
      case found => Future.successful(found)
    }
  }

  /** The slot of `key`, used now, and whether it is new. */
  private def use(key: K): (Slot, Boolean) = synchronized {
    val known = slots.remove(key)
    val slot = known.getOrElse(new Slot)
    slot.usedNanos = runtime.timer.nowNanos
    slots.put(key, slot)
    (slot, known.isEmpty)
  }

  /** What is held of `key` is not what it should be. */
  def forget(key: K): Unit = synchronized {
    slots.get(key).filter(_.found.isCompleted).foreach { slot =>
      slots.remove(key)
      held -= slot.weight
    }
  }

  private def begin(key: K, slot: Slot)(fetch: => Future[V]): Future[V] = {
    val fetched =
      try fetch
      catch { case NonFatal(error) => Future.failed(error) }
    fetched.onComplete { outcome =>
      outcome.toOption.flatMap(weightOf) match {
        case Some(weight) => arrived(key, slot, weight)
        case None => forget(key, slot)
      }
      slot.found.complete(outcome)
    }
    slot.found.future
  }

  /** Whether it is held or being fetched. */
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

  /** How often something was asked for that was held, or was being fetched for another. */
  def hits: Long = found.sum

  /** How often something had to be fetched. */
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
