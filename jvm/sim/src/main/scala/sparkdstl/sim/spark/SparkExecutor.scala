// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.spark

import java.io.IOException
import java.util.UUID

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}

import sparkdstl.log.error.DstlException
import sparkdstl.log.worker.TaskWriter
import sparkdstl.sim.machines.SimProcess
import sparkdstl.sim.model.{Change, Lineage, Names, StoreNames, Win}
import sparkdstl.sim.wiring.ExecutorLog
import sparkdstl.sim.world.{FaultKind, World}

/**
 * One attempt at a task.
 *
 * @param baseIds the checkpoint ids of the base states by store; empty in format version 1
 */
final case class TaskAttempt(attempt: Long, batch: Long, partition: Int, run: UUID, baseIds: Map[String, String])

/** The result of a successful attempt, including its accumulators. */
final case class TaskResult(attempt: Long, wins: Map[String, Win])

/** An executor of one application: its local stores, its tasks and its maintenance. */
final class SparkExecutor(
    val name: String,
    application: String,
    val process: SimProcess,
    world: World,
    files: SparkFiles,
    openLog: UUID => ExecutorLog
) {
  import world.{chance, config, faults, model, reach, verdict}
  private implicit val executor: ExecutionContext = process.inline

  private val LockMillis = 50.0
  private val LockTries = 200
  private val MaintainedAgain = 0.25

  private val logs = mutable.LinkedHashMap.empty[UUID, ExecutorLog]
  private val stores = mutable.LinkedHashMap.empty[(UUID, String), LocalStore]
  private val killed = mutable.HashMap.empty[Long, Promise[Nothing]]

  // States that are known to be committed: plain snapshots are made of these only.
  private val confirmed = mutable.LinkedHashMap.empty[(UUID, String), LocalState]
  private val maintained = mutable.HashMap.empty[(UUID, String), LocalState]

  def log(run: UUID): ExecutorLog = logs.getOrElseUpdate(run, openLog(run))

  /** The run's log, if this executor has worked for it. */
  def knownLog(run: UUID): Option[ExecutorLog] = logs.get(run)

  /** Unloads the stores of an ended run. */
  def unload(run: UUID): Unit = {
    stores.filterInPlace { case ((of, _), store) =>
      if (of == run) store.close()
      of != run
    }
    confirmed.filterInPlace { case ((of, _), _) => of != run }
  }

  /** Kills a task: it is interrupted, or continues as a zombie. */
  def kill(attempt: Long): Unit = killed.get(attempt).foreach { signal =>
    if (chance.happens(0.5)) signal.tryFailure(new InterruptedException(s"attempt $attempt was killed")): Unit
  }

  def run(task: TaskAttempt): Future[TaskResult] = {
    val runLog = log(task.run)
    val mine = storesOf(task)
    val signal = Promise[Nothing]()
    killed(task.attempt) = signal
    var writer = Option.empty[TaskWriter]
    val result = for {
      _ <- step(task, FaultKind.TaskFails)
      _ <- acquire(mine, task.attempt, LockTries)
      bases <- Future.sequence(mine.map { store =>
        val loaded = store.load(task.batch, task.baseIds.get(store.directory))
        watch(s"the load of ${store.directory}", loaded)
      })
      _ <- step(task, FaultKind.TaskFails)
      opened <- watch("its run", runLog.task(task.attempt, task.batch, config.partitions))
      _ = writer = Some(opened)
      wins <- commitAll(task, opened, mine.zip(bases), Map.empty)
      _ <- step(task, FaultKind.FailsBeforeSeal)
      _ <- Future.firstCompletedOf(Seq(watch(s"the seal of attempt ${task.attempt}", opened.seal()), signal.future))
      _ <- step(task, FaultKind.FailsAfterSeal)
    } yield {
      mine.zip(bases).foreach { case (store, (base, _)) => confirmed((task.run, store.directory)) = base }
      TaskResult(task.attempt, wins)
    }
    result.onComplete { _ =>
      mine.foreach(_.release(task.attempt))
      killed.remove(task.attempt)
    }
    result.recoverWith { case error =>
      verdict.note(s"attempt ${task.attempt} of $application on $name ends: $error")
      error match {
        case named: DstlException => reach.met(s"task fails with ${named.condition}")
        case _ =>
      }
      writer.foreach(runLog.giveUp)
      Future.failed(error)
    }
  }

  private def storesOf(task: TaskAttempt): Vector[LocalStore] = (0 until config.storesPerTask).map { number =>
    val directory = StoreNames.directory(task.partition, number, config.storesPerTask)
    stores.getOrElseUpdate((task.run, directory), new LocalStore(directory, log(task.run), files, world))
  }.toVector

  /** Acquires the stores of an attempt; other attempts wait, as for Spark's database. */
  private def acquire(mine: Vector[LocalStore], attempt: Long, triesLeft: Int): Future[Unit] =
    if (mine.forall(_.acquire(attempt))) Future.unit
    else {
      mine.foreach(_.release(attempt))
      if (triesLeft == 0) Future.failed(new IOException("another attempt does not release the store"))
      else pause(LockMillis).flatMap(_ => acquire(mine, attempt, triesLeft - 1))
    }

  private def commitAll(
      task: TaskAttempt,
      writer: TaskWriter,
      left: Vector[(LocalStore, (LocalState, Option[Long]))],
      done: Map[String, Win]
  ): Future[Map[String, Win]] = left match {
    case (store, base) +: others =>
      val tag = s"$application/${task.batch}:${store.directory}:${task.attempt}"
      val id = if (config.checkpointFormat == 2) Some(chance.nextUuid().toString) else None
      val forced = config.forcesSnapshot(task.batch, store.directory)
      val change = Change(tag, base._1.lineage.fingerprint, base._1.id, forced)
      val begun = process.timer.nowNanos
      watch(s"memory for ${store.directory}", store.commit(writer, base, change, id)).flatMap { win =>
        world.ending.writeTook((process.timer.nowNanos - begun) / 1000000)
        commitAll(task, writer, others, done + (store.directory -> win))
      }
    case _ => Future.successful(done)
  }

  /** One round of maintenance: uploads plain snapshots and deletes plain files that no retained version needs. */
  def maintain(): Future[Unit] = {
    val round =
      if (config.logsSnapshots) stores.valuesIterator.toVector.map(_.maintain())
      else confirmed.keys.toVector.sortBy(_._2).map { case (run, directory) => maintainPlain(run, directory) }
    Future.sequence(round).map(_ => ()).recover { case _: IOException => () }
  }

  private def maintainPlain(run: UUID, directory: String): Future[Unit] = {
    val state = confirmed((run, directory))
    // An unchanged store is maintained again by chance, because the last round may have failed.
    if (maintained.get((run, directory)).contains(state) && !chance.happens(MaintainedAgain)) Future.unit
    else
      for {
        before <- snapshots(directory)
        wanted = state.version >= before.map(_._1).maxOption.getOrElse(0L) + 2
        _ <- if (wanted) upload(directory, state) else Future.unit
        present <- if (wanted) snapshots(directory) else Future.successful(before)
        _ <- truncate(run, directory, present)
      } yield maintained((run, directory)) = state
  }

  private def upload(directory: String, state: LocalState): Future[Unit] = pause(20).map { _ =>
    world.objects.publish(Names.snapshot(directory, state.version, state.id), Lineage.encode(state.lineage), process)
  }

  /** Deletes plain snapshots by Spark's rule: the oldest of the last `batchesToRetain` versions before the newest snapshot stays. */
  private def truncate(run: UUID, directory: String, present: Seq[(Long, String)]): Future[Unit] = {
    val versions = present.map(_._1)
    val lowest = versions.filter(_ <= versions.maxOption.getOrElse(0L) - config.batchesToRetain + 1).maxOption
    (for (log <- logs.get(run); lowest <- lowest) yield {
      model.releasedBelow(directory, lowest)
      log.worker.release(directory, lowest)
      files.delete(present.filter(_._1 < lowest).map(_._2))
    }).getOrElse(Future.unit)
  }

  private def snapshots(directory: String): Future[Seq[(Long, String)]] =
    files.list(s"${Names.State}/$directory")
      .map(_.flatMap(path => Names.snapshotOf(path).map { case (version, _) => (version, path) }))

  /** A short delay, after which the task continues, fails or is killed. */
  private def step(task: TaskAttempt, kind: FaultKind): Future[Unit] = {
    val done = pause(if (chance.happens(0.05)) 2000 else 10)
    Future.firstCompletedOf(Seq(done, killed(task.attempt).future)).flatMap { _ =>
      if (faults.strikes(kind, chance)) Future.failed(new IOException(s"attempt ${task.attempt} fails ($kind)"))
      else Future.unit
    }
  }

  private def watch[T](what: String, wait: Future[T]): Future[T] = world.watch(process, what, wait)

  private def pause(millis: Double): Future[Unit] = process.pausing(chance.millis(millis))
}
