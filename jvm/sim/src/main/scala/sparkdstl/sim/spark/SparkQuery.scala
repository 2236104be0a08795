// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.spark

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}

import sparkdstl.log.coordinator.ownership.ListedBatches
import sparkdstl.log.error.DstlException
import sparkdstl.log.format.LogLayout
import sparkdstl.sim.machines.SimProcess
import sparkdstl.sim.model.{CommitContent, Names, PlanOracle}
import sparkdstl.sim.wiring.DriverLog
import sparkdstl.sim.world.{FaultKind, World}

/** The query was stopped by an interrupt of its thread. */
final class QueryStopped extends RuntimeException("the query was stopped")

/** The query has committed its last batch. */
final class QueryFinished extends RuntimeException("the query has finished")

/**
 * One run of the query: Spark's side of the protocol on the driver, batch after batch.
 *
 * @param batchesToRun the number of batches after which it ends, as with `availableNow`; None if it runs until it is stopped
 */
final class SparkQuery(
    val name: String,
    val run: UUID,
    batchesToRun: Option[Int],
    lingerMillis: Double,
    world: World,
    process: SimProcess,
    files: SparkFiles,
    val log: DriverLog,
    launcher: TaskLauncher
) {
  import world.{chance, config, faults, model, reach, verdict}
  private implicit val executor: ExecutionContext = process.executor
  private val stopSignal = Promise[Nothing]()
  private var purgedTo = 0L
  private var left = batchesToRun
  private var restMillis = 0.0
  // Those that existed at the start of the run.
  private var begunBatches = Set.empty[Long]
  // The newest entry of the source that exists or is being written; -1 if there is none.
  private var newestEntry = -1L

  private val over = Promise[Unit]()

  /** Fails once the run has ended. */
  def whenEnded: Future[Unit] = over.future

  /** Runs until a failure, a stop or the last batch. */
  def start(): Future[Unit] = {
    model.runBegins(name, run)
    val ended = for {
      listed <- interruptible(watch("opening the log", log.open()))
      entries <- interruptible(watch("listing the source's entries", files.list(Names.Source)))
      _ = newestEntry = entries.flatMap(Names.batchOf).maxOption.getOrElse(-1L)
      _ <- batchesFrom(firstBatch(listed))
    } yield ()
    ended.onComplete { result =>
      verdict.note(s"$name ends: $result")
      result.failed.foreach {
        case named: DstlException => reach.met(s"run ends with ${named.condition}")
        case _: QueryStopped | _: QueryFinished | _: IOException => // Expected under faults.
        case defect => verdict.violate(s"$name ends with an error that no fault causes: $defect")
      }
      log.close()
      over.complete(result)
    }
    whenEnded
  }

  def stop(): Unit = stopSignal.tryFailure(new QueryStopped): Unit

  /** Ends the run after the batch under way. */
  def finish(): Unit = left = Some(1)

  /** Begins no batch for so long after the batch under way. */
  def rest(millis: Double): Unit = restMillis = millis

  private def firstBatch(listed: ListedBatches): Long = {
    begunBatches = LogLayout.batchesIn(listed.offsets).toSet
    val newestOffset = begunBatches.maxOption
    val newestCommit = LogLayout.batchesIn(listed.commits).lastOption
    verdict.note(s"$name begins with offsets $newestOffset, commits $newestCommit")
    newestOffset match {
      case None => 0L
      case Some(batch) if newestCommit.contains(batch) => batch + 1
      case Some(batch) => batch
    }
  }

  private def batchesFrom(batch: Long): Future[Unit] = interruptible(runBatch(batch)).flatMap { _ =>
    left = left.map(_ - 1)
    if (left.exists(_ <= 0)) process.pausing(lingerMillis).flatMap(_ => Future.failed(new QueryFinished))
    else {
      val millis = restMillis + faults.millis(FaultKind.SlowTrigger, 1500, chance)
      restMillis = 0
      process.pausing(millis).flatMap(_ => batchesFrom(batch + 1))
    }
  }

  private def runBatch(batch: Long): Future[Unit] = {
    val jobs = if (faults.strikes(FaultKind.TwoJobs, chance)) 2 else 1
    for {
      isPlanned <- planned(batch)
      baseIds <- idsBefore(batch)
      isSkipped = isPlanned && config.checkpointFormat == 1 && faults.strikes(FaultKind.SinkSkips, chance)
      // A sink that has the batch runs no job. Without seals the log requires the job nevertheless.
      taken <- if (isSkipped && log.hasSeals(batch)) Future.successful(Vector.empty)
      else runJobs(batch, if (isSkipped) 1 else jobs, baseIds, Vector.empty)
      _ <- interruptible(commit(batch, taken))
      _ <- interruptible(purge(batch))
    } yield ()
  }

  /**
   * Writes `offsets/N` unless an earlier run has, and returns whether one has. If the source has new input, it writes an entry
   * first. Tasks may begin before the writes end.
   */
  private def planned(batch: Long): Future[Boolean] =
    if (begunBatches(batch)) Future.successful(true)
    else {
      val overlaps = config.overlapsOffsets && log.mayPlanAhead
      if (overlaps) reach.met("offsets-overlap-tasks")
      def written(what: String, write: Future[Unit]) = if (overlaps) Future.unit else watch(s"writing $what", write)
      for {
        _ <- if (chance.happens(0.5)) {
          newestEntry += 1
          written("a source's entry", log.planSource(newestEntry, s"$name reads $newestEntry".getBytes(UTF_8)))
        } else Future.unit
        content = PlanOracle.content(name, batch, Some(newestEntry).filter(_ >= 0))
        _ <- written(s"offsets/$batch", log.planOffsets(batch, content))
      } yield false
    }

  private def idsBefore(batch: Long): Future[Map[String, String]] =
    if (batch == 0 || config.checkpointFormat == 1) Future.successful(Map.empty)
    else
      watch("reading an entry", log.readEntry(batch - 1)).flatMap {
        case Some(entry) => Future.successful(CommitContent.idsOf(entry, model.stores))
        case None => Future.failed(new IOException(s"commits/${batch - 1} does not exist"))
      }

  private def runJobs(
      batch: Long,
      jobs: Int,
      baseIds: Map[String, String],
      before: Vector[TaskResult]
  ): Future[Vector[TaskResult]] =
    if (jobs == 0) Future.successful(before)
    else {
      val job = new SparkJob(
        config.partitions,
        (partition, attempt) => TaskAttempt(attempt, batch, partition, run, baseIds),
        launcher
      )
      interruptible(job.run()).flatMap(taken => runJobs(batch, jobs - 1, baseIds, before ++ taken))
    }

  private def commit(batch: Long, taken: Vector[TaskResult]): Future[Unit] = {
    // The last report of a store counts.
    val wins = taken.flatMap(_.wins).toMap
    val intent = model.intend(name, batch, wins)
    val ids = wins.flatMap { case (store, win) => win.id.map(store -> _) }
    val content = CommitContent.encode(intent.number, ids)
    val begun = process.timer.nowNanos
    watch(s"the commit of batch $batch", log.commit(batch, content, taken.map(_.attempt))).transform { result =>
      result match {
        case Success(_) =>
          world.ending.commitTook((process.timer.nowNanos - begun) / 1000000)
          model.acknowledged(intent)
        case Failure(unknown: DstlException) if unknown.condition == "DSTL_COMMIT_UNKNOWN" =>
        case Failure(error) => model.refused(intent, error)
      }
      result
    }
  }

  private def purge(batch: Long): Future[Unit] = {
    val threshold = batch - config.batchesToRetain
    if (threshold <= purgedTo) Future.unit
    else {
      val from = purgedTo
      purgedTo = threshold
      def act() = {
        model.purged(threshold)
        verdict.note(s"$name requests the deletion of entries until $threshold")
        // The first purge lists the entries.
        val wanted =
          if (from > 0) Future.successful(from until threshold) else log.batches().map(_.filter(_ < threshold))
        for {
          batches <- wanted
          // In Spark's order: readers conclude from `offsets/N` that the deletion of `commits/N` is not requested yet.
          _ <- files.delete(batches.map(Names.offset))
          _ <- batches.foldLeft(Future.unit)((before, b) => before.flatMap(_ => watch(s"deleting $b", log.delete(b))))
        } yield ()
      }
      if (faults.strikes(FaultKind.LatePurge, chance)) {
        val _ = process.after(chance.millis(1000, 0.1))(act().recover { case _: Exception => () }: Unit)
        Future.unit
      } else act()
    }
  }

  private def watch[T](what: String, wait: Future[T]): Future[T] = world.watch(process, s"$name: $what", wait)

  private def interruptible[T](wait: Future[T]): Future[T] = Future.firstCompletedOf(Seq(wait, stopSignal.future))
}
