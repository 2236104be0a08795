// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.play

import java.io.IOException
import java.util.concurrent.TimeoutException

import scala.util.Try

import sparkdstl.log.error.DstlException
import sparkdstl.sim.model.{Names, RetentionOracle}
import sparkdstl.sim.spark.{QueryFinished, QueryStopped}
import sparkdstl.sim.world.{Chance, Faults, World}

/**
 * The end of a world, without faults. The query recovers and commits some batches. Then no process runs until
 * all late requests have taken effect. A last application, or the same one, commits batches in which nothing may fail, and at
 * the end no process holds memory, waits, or has left needless objects on storage. In some worlds tasks have several attempts until
 * then, of which some fail, and deletions fail or messages are lost until the last few batches: no run may fail because of it.
 */
final class Ending(world: World, chance: Chance) {
  import world.{config, faults, model, objects, scheduler, verdict}

  private val PatienceMillis = 60 * 60000L

  /** The time within which all requests and deferred deletions of a process end, by a clock at half speed. */
  private val drainMillis = 2 * (math.max(config.constants.options.commitTimeoutMs, 60000) + 30000.0)

  /** The time within which a run repeats what has failed: a sweep that fails often waits ten minutes. */
  private val RepeatMillis = 700000.0
  private val MaxFailedRuns = 12

  private var phase = "wild"
  private var application = Option.empty[Application]
  private var failedRuns = 0
  private var lastEnd = ""
  private var target = 0L
  private var phaseSince = 0L
  private var oracle = Option.empty[RetentionOracle]
  private var latest = 0.0
  private var deletesInVain = false
  private var losesMessages = false
  private var done = false

  def isDone: Boolean = done

  def state: String = s"$phase until batch $target, $failedRuns runs have failed, the last with: $lastEnd"

  /** A driver crashes at an earlier request. If its run had ended, the next run is scheduled. */
  def lost(crashed: Application): Unit =
    if (application.contains(crashed) && phase == "recovering") recover()

  def begin(survivor: Option[Application]): Unit = {
    deletesInVain = faults.mayStrike(Faults.OfDeletions)
    losesMessages = faults.mayStrike(Faults.OfMessages)
    latest = scheduler.nowMillis + quietAfterMillis
    application = survivor
    enter("recovering", config.batchesToRetain + 2L)
    survivor match {
      case Some(running) => running.query.foreach { query =>
          query.whenEnded.onComplete(recovered)(running.driver.executor)
        }
      case None => recover()
    }
    lookLater()
  }

  /** A task has failed or was lost. If messages are lost, all repetitions of an ask may be lost, and the task fails. */
  def taskFailed(attempt: => String, error: Throwable): Unit =
    if (isAtRest && !faults.mayStrike(Faults.OfAttempts) && !(losesMessages && Ending.isUnanswered(error)))
      verdict.violate(s"without faults a task fails: $attempt: $error")

  /** A commit has taken so long after the end of its tasks. */
  def commitTook(millis: Long): Unit =
    if (isAtRest && millis > Ending.CommitMillis && !losesMessages)
      verdict.violate(s"without faults a commit takes $millis ms")

  /** A task has taken so long to write the changes of a store, including its wait for memory. */
  def writeTook(millis: Long): Unit =
    if (isAtRest && millis > Ending.WriteMillis)
      verdict.violate(s"without faults a task takes $millis ms to write its changes")

  private def isAtRest = phase == "at rest"

  private def enter(name: String, batches: Long): Unit = {
    phase = name
    phaseSince = scheduler.nowMillis
    target = model.newest + batches
    verdict.note(s"$name until batch $target")
  }

  private def lookLater(): Unit = world.after(chance.millis(700)) {
    if (!done) {
      if (scheduler.nowMillis - phaseSince > PatienceMillis) verdict.violate(s"without faults no progress: $state")
      if (model.newest >= target) application.flatMap(_.query).foreach(_.finish())
      // Objects that are not needed by then must be gone some batches later.
      if (isAtRest && oracle.isEmpty && model.newest >= target - Ending.LastBatches)
        tidyUp()
      lookLater()
    }
  }

  /** Ends the faults of deletions and messages, and notes the objects that are not needed. */
  private def tidyUp(): Unit = {
    faults.calmDown(leave = Faults.OfAttempts)
    if (deletesInVain) application.flatMap(_.query).foreach(_.rest(RepeatMillis))
    oracle = Some(world.oracle(losesMessages))
  }

  /** The time after which no request of a process takes effect any more. */
  private def quietAfterMillis: Double = config.constants.latestMillis + 30000

  private def runOn(batches: Option[Int], lingerMillis: Double = 0)(ended: Try[Unit] => Unit): Unit = {
    val on = application.filter(_.isAlive).getOrElse(world.director.newApplication())
    application = Some(on)
    on.startQuery(batches, lingerMillis).onComplete(ended)(on.driver.executor)
  }

  private def recover(): Unit = {
    phase = "recovering"
    runOn(if (config.shortRuns) Some(2) else None)(recovered)
  }

  private def recovered(end: Try[Unit]): Unit = {
    lastEnd = end.failed.get.toString
    end.failed.get match {
      case _: QueryFinished | _: QueryStopped =>
      case _ => failedRuns += 1
    }
    if (failedRuns > MaxFailedRuns) verdict.violate(s"without faults runs keep failing: $state")
    else if (model.newest < target) {
      phase = "between two runs"
      world.after(chance.millis(500))(recover())
    } else {
      // Its executors crash later, and their last requests take effect later still.
      val outlived = if (chance.happens(0.4)) application.map(_.crash()).map(_ => quietAfterMillis) else None
      phase = "waiting"
      world.after(math.max(outlived.getOrElse(1000.0), latest - scheduler.nowMillis))(rest())
    }
  }

  private def rest(): Unit = {
    objects.forgetVainDeletions()
    enter("at rest", config.batchesToRetain.toLong + config.versionsPerSnapshot + Ending.LastBatches + 2)
    restOn()
  }

  private def restOn(): Unit = runOn(if (config.shortRuns) Some(1) else None, lingerMillis = 5000) { end =>
    end.failed.get match {
      case _: QueryFinished if model.newest < target && config.shortRuns => world.after(chance.millis(500))(restOn())
      case _: QueryFinished => drain()
      // Attempts that wait for lost answers keep their stores.
      case _: IOException if losesMessages => world.after(chance.millis(500))(restOn())
      case error => verdict.violate(s"without faults a run fails: $error")
    }
  }

  /** Waits for the end of all work, then checks that no process holds anything. */
  private def drain(): Unit = {
    application.foreach(_.unloadLast())
    phase = "draining"
    world.after(drainMillis) {
      model.checkAll("at the end")
      val problems = world.leaks ++ oracle.toVector.flatMap(_.problems) ++ deletedOften
      problems.headOption.foreach(first =>
        verdict.violate(s"${problems.size} needless thing(s) remain: $first")
      )
      world.director.stopAll()
      done = true
    }
  }

  /** Objects of the log that were deleted too often after they were gone. */
  private def deletedOften: Vector[String] = if (deletesInVain) Vector.empty
  else objects.vainDeletions.collect {
    case (path, times) if times > Ending.Hedges && !Names.isSparks(path) => s"$path was deleted $times times"
  }.toVector
}

private object Ending {

  /** A barrier waits for messages and an upload, then an entry is created. */
  private val CommitMillis = 3000L

  /** A write may wait for the memory of other uploads. */
  private val WriteMillis = 1500L

  /** The allowed number of deletions of a missing object: a request has several attempts. */
  private val Hedges = 3

  /** The number of batches between the note of needless objects and the check. */
  val LastBatches = 4L

  /** Whether a task has failed because its driver did not answer a load or a seal in time. */
  private def isUnanswered(error: Throwable): Boolean = error match {
    case _: TimeoutException => true
    case _ => DstlException.conditionOf(error).contains("DSTL_SEAL_UNANSWERED")
  }
}
