// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.util.concurrent.atomic.LongAdder

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.control.NonFatal

import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Caches objects in memory while stores are rebuilt, so that each is fetched once for all stores of an executor. The least
 * recently used objects are evicted first; an object larger than the limit is cached alone. Failures and objects without weight
 * (bytes) are not cached; callers that have joined the fetch of an object without weight fetch it again, because it may have
 * been written since. Thread-safe.
 */
final class MemoryCache[K, V](initialBytes: Long, runtime: ProtocolRuntime)(weightOf: V => Option[Long]) {
  private implicit val executor: ExecutionContext = runtime.executor

  private final class Slot {
    val found: Promise[V] = Promise()
    var weight = 0L
    var usedNanos = 0L
  }

  // Guarded by this; the least recently used first.
  private val slots = mutable.LinkedHashMap.empty[K, Slot]
  private var held = 0L
  private var maxBytes = initialBytes

  private val found = new LongAdder
  private val fetched = new LongAdder

  /** Raises the limit to at least `bytes`. */
  def ensureAtLeast(bytes: Long): Unit = synchronized { maxBytes = math.max(maxBytes, bytes) }

  def get(key: K)(fetch: => Future[V]): Future[V] = {
    val (slot, isNew) = use(key)
    (if (isNew) fetched else found).increment()
    if (isNew) begin(key, slot)(fetch)
    else slot.found.future.flatMap {
      // The fetch began before this call. The next fetch begins after it.
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

  def forget(key: K): Unit = synchronized(slots.get(key).filter(_.found.isCompleted).foreach(evict(key, _)))

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

  def contains(key: K): Boolean = synchronized(slots.contains(key))

  def forgetIdle(idleNanos: Long): Unit = synchronized {
    val now = runtime.timer.nowNanos
    slots.iterator.takeWhile { case (_, slot) => now - slot.usedNanos >= idleNanos }
      .filter { case (_, slot) => slot.weight > 0 }.toVector.foreach((evict _).tupled)
  }

  def weight: Long = synchronized(held)

  /** Reads of objects that were cached or being fetched. */
  def hits: Long = found.sum

  def misses: Long = fetched.sum

  private def arrived(key: K, slot: Slot, weight: Long): Unit = synchronized {
    if (slots.get(key).exists(_ eq slot)) {
      slot.weight = weight
      held += weight
      var excess = held - maxBytes
      // Fetches under way have no weight yet.
      slots.iterator.filter { case (of, other) => of != key && other.weight > 0 }.takeWhile { case (_, other) =>
        val needed = excess > 0
        excess -= other.weight
        needed
      }.toVector.foreach((evict _).tupled)
    }
  }

  private def forget(key: K, slot: Slot): Unit = synchronized {
    if (slots.get(key).exists(_ eq slot)) slots.remove(key): Unit
  }

  /** Lock held. */
  private def evict(key: K, slot: Slot): Unit = {
    slots.remove(key)
    held -= slot.weight
  }
}
