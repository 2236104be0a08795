package sparkdstl.sim.spark

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.concurrent.{ExecutionContext, Future, Promise}

import sparkdstl.sim.model.{CommitContent, Names, ReferenceModel}
import sparkdstl.sim.world.{Chance, FaultKind, Faults, SimConfig, SimProcess, Verdict}

/** The query was stopped: its thread was interrupted in whatever it was at. */
final class QueryStopped extends RuntimeException("the query was stopped")

/**
 * One run of the query: Spark's side of the protocol on the driver, batch after batch.
 *
 * @param watch
 *   says that a wait must end
 */
final class SparkQuery(
    val name: String,
    val run: UUID,
    config: SimConfig,
    faults: Faults,
    chance: Chance,
    model: ReferenceModel,
    verdict: Verdict,
    process: SimProcess,
    files: SparkFiles,
    val log: DriverLog,
    launcher: TaskLauncher,
    watch: SparkQuery.Watch
) {
  private implicit val executor: ExecutionContext = process.executor
  private val stopSignal = Promise[Nothing]()
  private var purgedTo = 0L

  /** Runs until something fails or it is stopped; never ends well. */
  def start(): Future[Unit] = {
    val ended = for {
      _ <- interruptible(watch("opening the log", log.open()))
      first <- interruptible(firstBatch())
      _ <- batchesFrom(first)
    } yield ()
    ended.onComplete { result =>
      verdict.note(s"$name ends: $result")
      result.failed.foreach {
        case _: QueryStopped | _: IOException => // Such things happen.
        case defect => verdict.violate(s"$name ends with what no storage and no network can have caused: $defect")
      }
      log.close()
    }
    ended
  }

  def stop(): Unit = {
    val _ = stopSignal.tryFailure(new QueryStopped)
  }

  private def firstBatch(): Future[Long] = for {
    offsets <- files.list(Names.Offsets)
    commits <- watch("listing the commit entries", log.batches())
  } yield {
    val newestOffset = offsets.flatMap(Names.batchOf).maxOption
    val newestCommit = commits.maxOption
    verdict.note(s"$name begins with offsets $newestOffset, commits $newestCommit")
    newestOffset match {
      case None => 0L
      case Some(batch) if newestCommit.contains(batch) => batch + 1
      case Some(batch) => batch
    }
  }

  private def batchesFrom(batch: Long): Future[Unit] =
    interruptible(runBatch(batch)).flatMap(_ => batchesFrom(batch + 1))

  private def runBatch(batch: Long): Future[Unit] = {
    val jobs = if (chance.happens(faults(FaultKind.TwoJobs))) 2 else 1
    for {
      _ <- planned(batch)
      baseIds <- idsBefore(batch)
      taken <- runJobs(batch, jobs, baseIds, Vector.empty)
      _ <- interruptible(commit(batch, taken))
      _ <- interruptible(purge(batch))
      _ <- pause(chance.millis(1500, 0.02))
    } yield ()
  }

  /** Writes `offsets/N`, unless a run before has; two queries that both do so are told apart by what is in it. */
  private def planned(batch: Long): Future[Unit] = files.list(Names.Offsets).flatMap { known =>
    if (known.contains(Names.offset(batch)) && firstOfRun) { firstOfRun = false; Future.unit }
    else {
      firstOfRun = false
      files.create(Names.offset(batch), s"$name plans $batch".getBytes(UTF_8)).recoverWith { case e: IOException =>
        Future.failed(new IOException(s"offsets/$batch: multiple queries use this checkpoint, or $e"))
      }
    }
  }

  private var firstOfRun = true

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
    // The latest report of a store counts.
    val wins = taken.flatMap(_.wins).toMap
    val intent = model.intend(name, batch, wins)
    val ids = wins.flatMap { case (store, win) => win.id.map(store -> _) }
    val content = CommitContent.encode(intent.number, ids)
    watch(s"the commit of batch $batch", log.commit(batch, content, taken.map(_.attempt))).map(_ =>
      model.acknowledged(intent)
    )
  }

  private def purge(batch: Long): Future[Unit] = {
    val threshold = batch - config.batchesToRetain
    if (threshold <= purgedTo) Future.unit
    else {
      val from = math.max(0L, if (purgedTo == 0) threshold - 3 else purgedTo)
      purgedTo = threshold
      def act() = {
        model.purged(threshold)
        verdict.note(s"$name asks for the deletion of entries $from until $threshold")
        (from until threshold)
          .foldLeft(Future.unit)((before, b) => before.flatMap(_ => watch(s"deleting commits/$b", log.delete(b))))
          .flatMap(_ => files.delete((from until threshold).map(Names.offset)))
      }
      if (chance.happens(faults(FaultKind.LatePurge))) {
        val _ = process.after(chance.millis(1000, 0.1)) {
          val _ = act().recover { case _: Exception => () }
        }
        Future.unit
      } else act()
    }
  }

  private def pause(millis: Double): Future[Unit] = {
    val done = Promise[Unit]()
    val _ = process.after(millis)(done.success(()): Unit)
    done.future
  }

  private def interruptible[T](wait: Future[T]): Future[T] = Future.firstCompletedOf(Seq(wait, stopSignal.future))
}

object SparkQuery {

  /** Looks that something which is waited for ends. */
  trait Watch {
    def apply[T](what: String, wait: Future[T]): Future[T]
  }
}
