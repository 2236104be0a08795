package sparkdstl.sim.world

import java.util.{Comparator, PriorityQueue}

import scala.collection.mutable
import scala.concurrent.ExecutionContext
import scala.util.control.NonFatal

import sparkdstl.log.runtime.{Cancellable, ProtocolRuntime, Timer}

/**
 * Virtual time for one world: whatever happens is an event, one after another, in order of time; what falls due at the
 * same moment is ordered by chance.
 */
final class SimScheduler(chance: Chance) {
  private[world] final class Event(val process: SimProcess, val action: () => Unit) extends Cancellable {
    var at = 0L
    var tie = 0
    var sequence = 0L
    private[world] var cancelled = false
    override def cancel(): Unit = cancelled = true
  }

  private val order: Comparator[Event] = (a: Event, b: Event) => {
    val byTime = java.lang.Long.compare(a.at, b.at)
    if (byTime != 0) byTime
    else if (a.tie != b.tie) Integer.compare(a.tie, b.tie)
    else java.lang.Long.compare(a.sequence, b.sequence)
  }

  // Most events are due at once, and most that wait are timeouts which never happen: apart, both queues are quick.
  private val soon = new PriorityQueue[Event](64, order)
  private val later = new PriorityQueue[Event](256, order)
  private var now = 0L
  private var steps = 0L
  private var sequences = 0L

  /** Nanoseconds since the world began. */
  def nowNanos: Long = now

  def nowMillis: Long = now / 1000000

  /** Events so far. */
  def stepCount: Long = steps

  private[world] def schedule(process: SimProcess, delayNanos: Long)(action: () => Unit): Cancellable = {
    val event = new Event(process, action)
    insert(event, delayNanos)
    event
  }

  private[world] def insert(event: Event, delayNanos: Long): Unit = {
    event.at = now + math.max(0L, delayNanos)
    val queue = if (delayNanos <= SimScheduler.SoonNanos) soon else later
    event.tie = chance.nextInt()
    sequences += 1
    event.sequence = sequences
    val _ = queue.add(event)
  }

  /** Takes the event that is next; null when there is none. */
  private def next(): Event = {
    val (one, other) = (soon.peek(), later.peek())
    if (one == null) later.poll()
    else if (other == null || order.compare(one, other) < 0) soon.poll()
    else later.poll()
  }

  /** Runs the next event; false when nothing is left to happen. */
  def step(verdict: Verdict): Boolean = {
    val event = next()
    if (event == null) false
    else {
      now = math.max(now, event.at)
      if (!event.cancelled) {
        steps += 1
        verdict.mix(now)
        verdict.mix(event.process.number.toLong)
        event.process.run(event)
      }
      true
    }
  }
}

private object SimScheduler {

  /** What a process does next is due after this, in nanoseconds. */
  val SoonNanos = 1000L
}

/**
 * A process: what it has asked for happens while it lives. The events of a crashed one never happen; those of a paused
 * one wait until it goes on, and then come in any order.
 */
final class SimProcess(
    val name: String,
    val number: Int,
    scheduler: SimScheduler,
    chance: Chance,
    verdict: => Verdict
) {
  private val held = mutable.ArrayBuffer.empty[SimScheduler#Event]
  private var crashed = false
  private var paused = false
  private var pausedAt = 0L
  private var pauses = 0
  private var clockOffset = 0L

  def isCrashed: Boolean = crashed
  def isPaused: Boolean = paused && !crashed

  /** How often it was paused: a wait that spans a pause may be as long as that. */
  def pauseCount: Int = pauses

  val timer: Timer = new Timer {
    override def schedule(delayMillis: Long)(action: () => Unit): Cancellable = after(delayMillis.toDouble)(action())
    override def nowNanos: Long = scheduler.nowNanos + clockOffset
  }

  val executor: ExecutionContext = new ExecutionContext {
    override def execute(runnable: Runnable): Unit = {
      val _ = scheduler.schedule(SimProcess.this, SimScheduler.SoonNanos)(() => runnable.run())
    }
    override def reportFailure(cause: Throwable): Unit =
      verdict.violate(s"$name: nobody caught $cause at ${cause.getStackTrace.take(6).mkString(" < ")}")
  }

  val runtime = new ProtocolRuntime(timer, chance, executor)

  /** Does something in this process, later. */
  def after(millis: Double)(action: => Unit): Cancellable =
    scheduler.schedule(this, (millis * 1e6).toLong)(() => action)

  def crash(): Unit = if (!crashed) {
    verdict.note(s"$name crashes")
    crashed = true
    held.clear()
  }

  def pause(): Unit = if (!crashed && !paused) {
    verdict.note(s"$name is paused")
    paused = true
    pauses += 1
    pausedAt = scheduler.nowNanos
  }

  /** @param clockStood whether its clock did not count the pause, as that of a suspended machine */
  def resume(clockStood: Boolean): Unit = if (paused && !crashed) {
    verdict.note(s"$name goes on${if (clockStood) ", its clock did not count the pause" else ""}")
    paused = false
    if (clockStood) clockOffset -= scheduler.nowNanos - pausedAt
    held.foreach(event => scheduler.insert(event.asInstanceOf[scheduler.Event], (chance.nextDouble() * 1e6).toLong))
    held.clear()
  }

  /** Its clock jumps ahead; timers that are set already are not moved. */
  def jumpAhead(millis: Long): Unit = clockOffset += millis * 1000000

  private[world] def run(event: SimScheduler#Event): Unit =
    if (!crashed) {
      if (paused) held += event: Unit
      else
        try event.action()
        catch {
          case NonFatal(e) =>
            verdict.violate(s"$name: nobody caught $e at ${e.getStackTrace.take(8).mkString(" < ")}")
        }
    }
}
