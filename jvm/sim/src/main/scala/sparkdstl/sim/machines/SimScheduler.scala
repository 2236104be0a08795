// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.machines

import java.util.{Comparator, PriorityQueue}

import scala.collection.mutable

import sparkdstl.log.runtime.Cancellable
import sparkdstl.sim.world.{Chance, Verdict}

/**
 * Virtual time for one world: all actions are events, which run one after another in order of time. Events that are due at the
 * same time run in random order. An event takes no virtual time.
 */
final class SimScheduler(chance: Chance) {
  private[machines] final class Event(val process: SimProcess, private[machines] var action: () => Unit)
      extends Cancellable {
    var at = 0L
    var tie = 0
    var sequence = 0L
    private[machines] var waits = false
    def isCancelled: Boolean = action == null
    override def cancel(): Unit = if (action != null) {
      action = null
      if (waits) cancelledLater += 1
    }
  }

  private val order: Comparator[Event] = (a: Event, b: Event) => {
    val byTime = java.lang.Long.compare(a.at, b.at)
    if (byTime != 0) byTime
    else if (a.tie != b.tie) Integer.compare(a.tie, b.tie)
    else java.lang.Long.compare(a.sequence, b.sequence)
  }

  // Events that are due now, in any order: most events are.
  private val ready = mutable.ArrayBuffer.empty[Event]
  private val later = new PriorityQueue[Event](256, order)
  private var cancelledLater = 0
  private var now = 0L
  private var steps = 0L
  private var sequences = 0L

  /** Nanoseconds since the start of the world. */
  def nowNanos: Long = now

  def nowMillis: Long = now / 1000000

  /** The number of events so far. */
  def stepCount: Long = steps

  private[machines] def schedule(process: SimProcess, delayNanos: Long)(action: () => Unit): Cancellable = {
    val event = new Event(process, action)
    insert(event, delayNanos)
    event
  }

  private[machines] def insert(event: Event, delayNanos: Long): Unit = {
    event.at = now + math.max(0L, delayNanos)
    if (delayNanos <= 0) ready += event: Unit
    else {
      event.tie = chance.nextInt()
      sequences += 1
      event.sequence = sequences
      event.waits = true
      // Most waiting events are cancelled timeouts: without them the queue is short.
      if (cancelledLater > 64 && cancelledLater > later.size / 2) {
        later.removeIf(_.isCancelled): Unit
        cancelledLater = 0
      }
      val _ = later.add(event)
    }
  }

  /** Takes the next event; null if none is left. */
  private def next(): Event =
    if (ready.isEmpty) {
      val event = later.poll()
      if (event != null) {
        event.waits = false
        if (event.isCancelled) cancelledLater -= 1
      }
      event
    } else {
      val last = ready.size - 1
      val chosen = if (last == 0) 0 else chance.below(last + 1)
      val event = ready(chosen)
      ready(chosen) = ready(last)
      ready.remove(last): Unit
      event
    }

  /** Runs the next event; false if none is left. */
  def step(verdict: Verdict): Boolean = {
    val event = next()
    if (event == null) false
    else {
      now = math.max(now, event.at)
      if (!event.isCancelled) {
        steps += 1
        verdict.mix(now)
        verdict.mix(event.process.number.toLong)
        event.process.run(event)
      }
      true
    }
  }
}
