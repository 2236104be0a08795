package sparkdstl.sim.world

import java.util.{Comparator, PriorityQueue}

import scala.collection.mutable
import scala.concurrent.ExecutionContext
import scala.util.control.NonFatal

import sparkdstl.log.runtime.{Cancellable, ProtocolRuntime, Timer}

/**
 * Virtual time for one world: whatever happens is an event, one after another, in order of time; what falls due at the
 * same moment is ordered by chance. What follows at once takes no time.
 */
final class SimScheduler(chance: Chance) {
  private[world] final class Event(val process: SimProcess, private[world] var action: () => Unit) extends Cancellable {
    var at = 0L
    var tie = 0
    var sequence = 0L
    private[world] var waits = false
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

  // Most events are due at once: any of them may be next.
  private val ready = mutable.ArrayBuffer.empty[Event]
  private val later = new PriorityQueue[Event](256, order)
  private var cancelledLater = 0
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
    if (delayNanos <= 0) ready += event: Unit
    else {
      event.tie = chance.nextInt()
      sequences += 1
      event.sequence = sequences
      event.waits = true
      // Most that wait are timeouts which never happen: without them the queue is short.
      if (cancelledLater > 64 && cancelledLater > later.size / 2) {
        later.removeIf(_.isCancelled): Unit
        cancelledLater = 0
      }
      val _ = later.add(event)
    }
  }

  /** Takes the event that is next; null when there is none. */
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

  /** Runs the next event; false when nothing is left to happen. */
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
  private val MaxDepth = 64
  private val held = mutable.ArrayBuffer.empty[SimScheduler#Event]
  private var crashed = false
  private var paused = false
  private var pausedAt = 0L
  private var pauses = 0
  private var clockOffset = 0L
  private var killed: () => Unit = () => crash()

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
      val _ = scheduler.schedule(SimProcess.this, 0)(() => runnable.run())
    }
    override def reportFailure(cause: Throwable): Unit = uncaught(cause)
  }

  /** For what follows at once in the same event: the world's own code, whose steps are not worth an event each. */
  val inline: ExecutionContext = new ExecutionContext {
    private var depth = 0
    override def execute(runnable: Runnable): Unit =
      if (depth == MaxDepth) executor.execute(runnable)
      else {
        depth += 1
        try runnable.run()
        finally depth -= 1
      }
    override def reportFailure(cause: Throwable): Unit = uncaught(cause)
  }

  val runtime = new ProtocolRuntime(timer, chance, executor)

  /** Does something in this process, later. */
  def after(millis: Double)(action: => Unit): Cancellable =
    scheduler.schedule(this, (millis * 1e6).toLong)(() => action)

  /** Does something in this process now, unless it has crashed, or when it goes on, if it is paused. */
  def perform(action: => Unit): Unit = if (!crashed) run(new scheduler.Event(this, () => action))

  /** How it ends when somebody kills it, with what that means for others; unless told, it just crashes. */
  def onKill(action: () => Unit): Unit = killed = action

  def kill(): Unit = if (!crashed) killed()

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
    held.filterNot(_.isCancelled).foreach(event =>
      scheduler.insert(event.asInstanceOf[scheduler.Event], (chance.nextDouble() * 1e6).toLong)
    )
    held.clear()
  }

  /** Its clock jumps ahead; timers that are set already are not moved. */
  def jumpAhead(millis: Long): Unit = clockOffset += millis * 1000000

  private[world] def run(event: SimScheduler#Event): Unit =
    if (!crashed) {
      if (paused) held += event: Unit
      else
        try event.action()
        catch { case NonFatal(e) => uncaught(e) }
    }

  private def uncaught(cause: Throwable): Unit =
    verdict.violate(s"$name: nobody caught $cause at ${cause.getStackTrace.take(8).mkString(" < ")}")
}
