// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.machines

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.control.NonFatal

import sparkdstl.log.runtime.{Cancellable, ProtocolRuntime, Timer}
import sparkdstl.sim.world.{Chance, Verdict}

/**
 * A process and its events. The events of a crashed process never run; those of a paused
 * process wait until it resumes, and then run in any order.
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
  private var clockRate = 1.0
  private var killed: () => Unit = () => crash()

  def isCrashed: Boolean = crashed
  def isPaused: Boolean = paused && !crashed

  /** The number of pauses: a wait that spans a pause may take as long as the pause. */
  def pauseCount: Int = pauses

  val timer: Timer = new Timer {
    override def schedule(delayMillis: Long)(action: () => Unit): Cancellable = after(delayMillis / clockRate)(action())
    override def nowNanos: Long = (scheduler.nowNanos * clockRate).toLong + clockOffset
  }

  val executor: ExecutionContext = new ExecutionContext {
    override def execute(runnable: Runnable): Unit = {
      val _ = scheduler.schedule(SimProcess.this, 0)(() => runnable.run())
    }
    override def reportFailure(cause: Throwable): Unit = uncaught(cause)
  }

  /** Runs actions within the current event, for code of the simulation that needs no event for each step. */
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

  /** Runs `action` in this process later. */
  def after(millis: Double)(action: => Unit): Cancellable =
    scheduler.schedule(this, (millis * 1e6).toLong)(() => action)

  /** Completes later. */
  def pausing(millis: Double): Future[Unit] = {
    val done = Promise[Unit]()
    after(millis)(done.success(()): Unit): Unit
    done.future
  }

  /** Runs `action` in this process now; never if it has crashed, and on resume if it is paused. */
  def perform(action: => Unit): Unit = if (!crashed) run(new scheduler.Event(this, () => action))

  /** Sets the effect of [[kill]] on the process and on others; by default the process only crashes. */
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

  /** @param clockStood whether its clock stood still during the pause, like that of a suspended machine */
  def resume(clockStood: Boolean): Unit = if (paused && !crashed) {
    verdict.note(s"$name resumes${if (clockStood) ", its clock stood still" else ""}")
    paused = false
    if (clockStood) clockOffset -= ((scheduler.nowNanos - pausedAt) * clockRate).toLong
    held.filterNot(_.isCancelled).foreach(event =>
      scheduler.insert(event.asInstanceOf[scheduler.Event], (chance.nextDouble() * 1e6).toLong)
    )
    held.clear()
  }

  /** Sets the speed of its clock relative to virtual time. */
  def drift(rate: Double): Unit = clockRate = rate

  /** Moves its clock ahead without moving the timers that are set. */
  def jumpAhead(millis: Long): Unit = clockOffset += millis * 1000000

  private[machines] def run(event: SimScheduler#Event): Unit =
    if (!crashed) {
      if (paused) held += event: Unit
      else
        try event.action()
        catch { case NonFatal(e) => uncaught(e) }
    }

  private def uncaught(cause: Throwable): Unit =
    verdict.violate(s"$name: uncaught $cause at ${cause.getStackTrace.take(8).mkString(" < ")}")
}
