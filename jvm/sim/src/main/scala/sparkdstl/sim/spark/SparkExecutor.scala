package sparkdstl.sim.spark

import java.io.IOException
import java.util.UUID

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}
import scala.util.control.NonFatal

import sparkdstl.log.format.SegmentKind
import sparkdstl.sim.model.{Change, Lineage, LineageFiles, Names, ReferenceModel, SnapshotZip, StoreNames, Win}
import sparkdstl.sim.world.{Chance, FaultKind, SimConfig, SimProcess, Verdict}

/**
 * One attempt at a task.
 *
 * @param baseIds
 *   the checkpoint ids to start from, by store; none in format version 1
 */
final case class TaskAttempt(
    attempt: Long,
    batch: Long,
    partition: Int,
    run: UUID,
    baseIds: Map[String, String]
)

/** What a successful attempt tells Spark, in its result and in accumulators. */
final case class TaskResult(attempt: Long, wins: Map[String, Win])

/** What an executor takes from the world around it. */
final class ExecutorSetting(
    val config: SimConfig,
    val faults: sparkdstl.sim.world.Faults,
    val chance: Chance,
    val model: ReferenceModel,
    val verdict: Verdict,
    val publish: (String, Array[Byte], SimProcess) => Unit
)

/** An executor of one application: its stores on local disk, the tasks it runs, its maintenance. */
final class SparkExecutor(
    val name: String,
    application: String,
    val process: SimProcess,
    setting: ExecutorSetting,
    files: SparkFiles,
    openLog: (SparkExecutor, UUID) => ExecutorLog
) {
  import setting.{chance, config, faults, model, verdict}
  private implicit val executor: ExecutionContext = process.inline

  private val MaintainedAgain = 0.25

  private final class LocalStore(
      val version: Long,
      val attempt: Option[Long],
      val id: Option[String],
      val state: Lineage
  )

  private val logs = mutable.Map.empty[UUID, ExecutorLog]
  private val stores = mutable.Map.empty[(UUID, String), LocalStore]

  // States that are known to be committed: only of these snapshots are made.
  private val confirmed = mutable.Map.empty[(UUID, String), LocalStore]
  private val maintained = mutable.Map.empty[(UUID, String), LocalStore]
  private val killed = mutable.Set.empty[Long]

  def log(run: UUID): ExecutorLog = logs.getOrElseUpdate(run, openLog(this, run))

  /** The run's log, if this executor has worked for it. */
  def knownLog(run: UUID): Option[ExecutorLog] = logs.get(run)

  /** A run has ended; its stores are unloaded: another run has stores of its own. */
  def closeLog(run: UUID): Unit = {
    logs.remove(run).foreach(_.close())
    stores.keys.filter(_._1 == run).toVector.foreach(stores.remove(_): Unit)
    Seq(confirmed, maintained).foreach(_.filterInPlace((of, _) => of._1 != run))
  }

  def kill(attempt: Long): Unit = killed += attempt

  /** What the attempt, or anybody if none is named, left locally of these stores is not to be built upon. */
  def drop(run: UUID, attempt: Option[Long], directories: Seq[String]): Unit = directories.foreach { directory =>
    stores.get((run, directory)).filter(store => attempt.isEmpty || store.attempt == attempt).foreach { _ =>
      verdict.note(s"$name drops $directory${attempt.fold("")(a => s" of attempt $a")}")
      stores.remove((run, directory))
    }
  }

  def run(task: TaskAttempt): Future[TaskResult] = {
    val runLog = log(task.run)
    val directories = (0 until config.storesPerTask).map(StoreNames.directory(
      task.partition,
      _,
      config.storesPerTask
    )).toVector
    val result = for {
      _ <- step(task, FaultKind.TaskFails)
      bases <- Future.sequence(directories.map(load(task, runLog, _)))
      _ <- step(task, FaultKind.TaskFails)
      written = bases.map(apply(task, _))
      _ <- seal(task, runLog, written)
    } yield {
      bases.foreach { case (directory, base) => confirmed((task.run, directory)) = base }
      TaskResult(task.attempt, written.map(_._2).toMap)
    }
    result
  }

  /** One round of maintenance: snapshots, then what no retained version needs any more. */
  def maintain(): Future[Unit] = Future
    .sequence(confirmed.keys.toVector.sortBy(_._2).map { case (run, directory) => maintain(run, directory) })
    .map(_ => ())
    .recover { case _: IOException => () }

  private def maintain(run: UUID, directory: String): Future[Unit] = {
    val state = confirmed((run, directory))
    // A store that has not changed has little to do; but what failed may go better now.
    if (maintained.get((run, directory)).contains(state) && !chance.happens(MaintainedAgain)) Future.unit
    else
      for {
        before <- snapshots(directory)
        logged <- loggedSnapshots(run, directory)
        newestSnapshot = (before.map(_._1) ++ logged).maxOption.getOrElse(0L)
        wanted = state.version >= newestSnapshot + 2
        isUploaded = wanted && !isLogged(run)
        _ <- if (isUploaded) upload(directory, state) else if (wanted) log(run, directory) else Future.unit
        present <- if (isUploaded) snapshots(directory) else Future.successful(before)
        _ <- truncate(run, directory, present)
      } yield maintained((run, directory)) = state
  }

  private def isLogged(run: UUID): Boolean = config.logsSnapshots && logs.get(run).exists(_.takesSnapshots)

  /** Of what the store is now, whether or not that is committed, or ever will be. Nobody waits for it. */
  private def log(run: UUID, directory: String): Future[Unit] = {
    for (store <- stores.get((run, directory)) if store.attempt.nonEmpty; log <- logs.get(run)) {
      val key = StoreNames.segment(directory, store.version, store.id, SegmentKind.Snapshot)
      log.snapshot(key, LineageFiles.encode(store.state)): Unit
    }
    Future.unit
  }

  /** None where the driver does not answer: then less is known to be unneeded. */
  private def loggedSnapshots(run: UUID, directory: String): Future[Seq[Long]] =
    logs.get(run).fold(Future.successful(Seq.empty[Long]))(_.snapshots(directory).map(_.map(_._1)))
      .recover { case NonFatal(_) => Nil }

  private def upload(directory: String, state: LocalStore): Future[Unit] = pause(20).map { _ =>
    setting.publish(Names.snapshot(directory, state.version, state.id), Lineage.encode(state.state), process)
  }

  private def truncate(
      run: UUID,
      directory: String,
      present: Seq[(Long, Option[String], String)]
  ): Future[Unit] = {
    val versions = present.map(_._1).distinct.sorted
    logs.get(run).flatMap(log => ExecutorLog.base(versions, config.batchesToRetain).map(log -> _)) match {
      case None => Future.unit
      case Some((log, lowest)) =>
        model.releasedBelow(directory, lowest)
        log.release(directory, lowest)
        files.delete(present.filter(_._1 < lowest).map(_._3))
    }
  }

  private def snapshots(directory: String): Future[Seq[(Long, Option[String], String)]] =
    files.list(s"${Names.State}/$directory").map(_.flatMap { path =>
      Names.snapshotOf(path).map { case (version, id) => (version, id, path) }
    })

  private def load(task: TaskAttempt, runLog: ExecutorLog, directory: String): Future[(String, LocalStore)] = {
    val id = task.baseIds.get(directory)
    val local = stores.get((task.run, directory)).filter(s => s.version == task.batch && (id.isEmpty || s.id == id))
    val base = local match {
      case Some(store) => Future.successful(store)
      case None if task.batch == 0 => Future.successful(new LocalStore(0, None, None, Lineage.Empty))
      case None =>
        for {
          present <- snapshots(directory)
          logged <- runLog.snapshots(directory)
          state <- replay(runLog, directory, task.batch, id, present.map(s => (s._1, s._2)).toSet, logged.toSet)
        } yield {
          model.loaded(s"attempt ${task.attempt} of $application on $name", directory, task.batch, state)
          new LocalStore(task.batch, None, id, state)
        }
    }
    base.map(directory -> _)
  }

  private def replay(
      runLog: ExecutorLog,
      directory: String,
      version: Long,
      id: Option[String],
      present: Set[(Long, Option[String])],
      logged: Set[(Long, Option[String])]
  ): Future[Lineage] =
    if (version == 0) Future.successful(Lineage.Empty)
    else if (logged((version, id)))
      runLog.readSnapshot(StoreNames.segment(directory, version, id, SegmentKind.Snapshot)).flatMap {
        case Some(files) => Future.successful(LineageFiles.decode(files))
        case None => Future.failed(new IOException(s"snapshot $version of $directory is in the log no more"))
      }.recoverWith { case error: IOException =>
        // As Spark does: it is skipped, and the store is rebuilt from an earlier one and the log.
        verdict.note(s"$name skips a snapshot: $error")
        replay(runLog, directory, version, id, present - ((version, id)), logged - ((version, id)))
      }
    else if (present((version, id)))
      runLog.read(StoreNames.segment(directory, version, id, SegmentKind.Snapshot)).flatMap {
        case Some(bytes) => Future.successful(Lineage.decode(bytes))
        case None => Future.failed(new IOException(s"snapshot $version of $directory is gone"))
      }
    else {
      val wanted = StoreNames.segment(directory, version, id, SegmentKind.Changelog)
      runLog.read(wanted).flatMap { found =>
        found.flatMap(Change.decode) match {
          case Some(change) if change.needsSnapshot =>
            Future.failed(new IOException(s"${wanted.relativePath} cannot be replayed, and its snapshot is not there"))
          case Some(change) =>
            replay(runLog, directory, version - 1, change.baseId, present, logged).map(_ + change.tag)
          case None => Future.failed(new IOException(s"${wanted.relativePath} does not exist"))
        }
      }
    }

  /** The store's commit: from here on the local state is this attempt's, whatever becomes of it. */
  private def apply(task: TaskAttempt, base: (String, LocalStore)): ((String, LocalStore), (String, Win)) = {
    val (directory, from) = base
    val tag = s"$application/${task.batch}:$directory:${task.attempt}"
    val id = if (config.checkpointFormat == 2) Some(chance.nextUuid().toString) else None
    val change = Change(tag, from.state.fingerprint, from.id, config.forcesSnapshot(task.batch, directory))
    stores((task.run, directory)) = new LocalStore(task.batch + 1, Some(task.attempt), id, from.state + tag)
    (base, directory -> Win(task.attempt, change, id))
  }

  private def seal(
      task: TaskAttempt,
      runLog: ExecutorLog,
      written: Vector[((String, LocalStore), (String, Win))]
  ): Future[Unit] = {
    val segments = written.flatMap { case ((directory, base), (_, win)) =>
      val length = if (chance.happens(0.3)) chance.between(200, 1500) else chance.between(40, 120)
      val changelog = StoreNames.segment(directory, task.batch + 1, win.id, SegmentKind.Changelog)
      val files = LineageFiles.encode(base.state + win.change.tag)
      val snapshot = WrittenSegment(changelog.copy(kind = SegmentKind.Snapshot), None, SnapshotZip.encode(files)) +:
        files.map { file =>
          WrittenSegment(
            changelog.copy(qualifier = Some(file.name), kind = SegmentKind.SnapshotFile),
            None,
            file.content
          )
        }
      WrittenSegment(changelog, base.attempt, Change.encode(win.change, length)) +:
        (if (win.change.needsSnapshot) snapshot else Vector.empty)
    }
    val sealing = for {
      _ <- runLog.seal(task.attempt, task.batch, config.partitions, segments)
      _ <- step(task, FaultKind.FailsAfterSeal)
    } yield ()
    // A task that is killed does not wait for the answer to what it has asked.
    val interrupted =
      if (killed(task.attempt) && chance.happens(0.3))
        Future.failed(new InterruptedException(s"attempt ${task.attempt} was killed"))
      else sealing
    interrupted.recoverWith { case error =>
      verdict.note(s"attempt ${task.attempt} of $application on $name ends after its seal: $error")
      runLog.withdraw(task.attempt, task.batch)
      Future.failed(error)
    }
  }

  /** A little work, after which the task may have been killed (then it stops, or goes on as a zombie), or fails. */
  private def step(task: TaskAttempt, kind: FaultKind): Future[Unit] =
    pause(if (chance.happens(0.05)) 2000 else 10).flatMap { _ =>
      if (killed(task.attempt) && chance.happens(0.5))
        Future.failed(new InterruptedException(s"attempt ${task.attempt} was killed"))
      else if (chance.happens(faults(kind)))
        Future.failed(new IOException(s"attempt ${task.attempt} failed by itself ($kind)"))
      else Future.unit
    }

  private def pause(millis: Double): Future[Unit] = {
    val done = scala.concurrent.Promise[Unit]()
    val _ = process.after(chance.millis(millis, 0))(done.success(()): Unit)
    done.future
  }
}
