package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.JsonAST.{JObject, JString}
import org.json4s.jackson.JsonMethods

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.{
  CommitMetrics,
  CoordinatedRuns,
  DriverResources,
  RunCoordinator,
  RunFactory,
  RunLimits,
  RunSetup
}
import sparkdstl.log.coordinator.ownership.BasePathOwner
import sparkdstl.log.coordinator.retention.Deleter
import sparkdstl.log.failpoints.Stops
import sparkdstl.log.read.EntryReader
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.storage.HadoopLogStorage
import sparkdstl.log.storage.StorageOperation.Read
import sparkdstl.log.transport.{FromDriver, RunId, ToDriver}

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.internal.Logging
import org.apache.spark.util.Utils
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.files.PartitionDirectories
import org.apache.spark.sql.execution.streaming.state.dstl.rpc.{DriverDoor, ExecutorDirectory, Rpc}
import org.apache.spark.sql.execution.streaming.state.dstl.worker.RunOfTask

/** A run of a streaming query that this driver coordinates, for as long as the thread that drives it lives. */
private[dstl] final class DrivenRun(
    val coordinator: RunCoordinator,
    val reports: AttemptReports,
    storage: QueryStorage,
    drivenBy: Thread
) {
  private val isOwned = new AtomicBoolean

  def isOver: Boolean = !drivenBy.isAlive

  /** Makes the run that of the file manager that asks, which writes its commit entries. False if it is another's. */
  def own(): Boolean = isOwned.compareAndSet(false, true)

  /** Ends the run, and then the requests that it may still have under way. */
  def end(): Future[Unit] = coordinator.close().transform { ended =>
    storage.close()
    ended
  }(ExecutionContext.parasitic)

  /** Completes when no attempt of the run is under way, or after `millis`. */
  def whenQuiet(millis: Long): Future[Unit] = storage.whenQuiet(millis)
}

/** The driver's side of a process: its door, and the runs that it coordinates. */
private[dstl] final class DriverSide(env: SparkEnv, environment: DstlEnvironment) extends Logging {
  import DriverSide._

  val runs = new CoordinatedRuns
  val metrics = new CommitMetrics
  private val executors = new ExecutorDirectory

  // Guarded by this, by checkpoint root.
  private val driven = mutable.HashMap.empty[String, DrivenRun]
  // Entries whose deletion was requested while no run was at work, and that are still there.
  private val unowned = mutable.LinkedHashMap.empty[String, Set[Long]]

  /** Lets executors ask, and closes the environment when Spark ends. */
  def open(): Unit = {
    val door = new DriverDoor(env.rpcEnv, answer, runs, executors, () => environment.close())
    try {
      env.rpcEnv.setupEndpoint(Rpc.DriverEndpoint, door): Unit
      watchOver()
    } catch { case _: IllegalStateException => environment.close() } // Spark has ended already.
  }

  /** The run on a checkpoint whose query is still driven. */
  def on(root: Path): Option[DrivenRun] = synchronized(driven.get(root.toString).filterNot(_.isOver))

  /** The run that the calling thread drives on this checkpoint. */
  def drivenHere(root: Path): Option[DrivenRun] =
    for {
      query <- StreamThread.query
      run <- on(root) if run.coordinator.run == query.run
    } yield run

  /**
   * Begins a run if the calling thread drives the query that this checkpoint belongs to and has not begun one yet; what
   * reads the checkpoint meanwhile, on this thread or another, begins nothing.
   */
  def beginIfDriven(root: Path, configuration: Configuration, options: LogOptions): Option[DrivenRun] =
    StreamThread.query.filter(_ => isStarting).filter { query =>
      queryIdIn(root, configuration, options).contains(query.query)
    }.map(query => begin(root, query.run, configuration, options))

  /** Deletes an entry of a checkpoint on which no run is at work, if it is known not to be needed. */
  def deleteUnowned(root: Path, batch: Long, configuration: Configuration, options: LogOptions): Unit = {
    val location = DstlEnvironment.location(root, configuration, options)
    val storage = environment.storage(location, configuration, options)
    val deleter = new Deleter(storage, new EntryReader(storage, RunLimits().fetchLength))
    val before = synchronized(unowned.getOrElse(root.toString, Set.empty[Long]))
    val left = environment.waiting.on(deleter.deleteUnowned(batch, before))
    synchronized {
      unowned.remove(root.toString)
      if (unowned.size >= RememberedCheckpoints) unowned.remove(unowned.head._1)
      if (left.nonEmpty) unowned.put(root.toString, left): Unit
    }
  }

  /** Whether the calling thread drives a query that has not begun its run. */
  def isStarting: Boolean = StreamThread.query.exists(query => !hasBegun(query.run))

  private def hasBegun(run: UUID): Boolean = synchronized(driven.valuesIterator.exists(_.coordinator.run == run))

  private def begin(
      root: Path,
      run: UUID,
      configuration: Configuration,
      options: LogOptions
  ): DrivenRun = {
    synchronized(driven.remove(root.toString)).foreach { before =>
      val ended = Promise[Unit]()
      ended.completeWith(endOf(before)): Unit
      environment.runtime.timer.schedule(PredecessorMillis)(() => ended.trySuccess(()): Unit): Unit
      try environment.waiting.on(ended.future)
      catch { case NonFatal(error) => logWarning(s"The run before on $root has not ended well", error) }
      environment.waiting.on(before.whenQuiet(PredecessorMillis))
    }
    val location = DstlEnvironment.location(root, configuration, options)
    val storage = environment.storage(location, configuration, options)
    def checkpointAt(root: Path) = environment.storage(location.copy(root = root), configuration, options).checkpoint
    environment.waiting.on(new BasePathOwner(storage, checkpointAt).claim())
    val context = SparkContext.getOrCreate()
    val reports = new AttemptReports(context)
    val setup = RunSetup(run, Utils.localCanonicalHostName(), environment.application, reports.id, options)
    val resources = DriverResources(executors, environment.inlineBudget, metrics)
    val coordinator = environment.waiting.on(RunFactory.begin(Stops.beforeCommitEntries(storage), setup, resources))
    new PartitionDirectories(root, configuration, options, environment).restore(coordinator.stores).failed
      .foreach(error => logWarning(error.getMessage))(environment.runtime.executor)
    RunOfTask.tell(context, run)
    val made = new DrivenRun(coordinator, reports, storage, Thread.currentThread())
    synchronized(driven.put(root.toString, made)): Unit
    runs.begin(coordinator): Unit
    val manner = HadoopLogStorage.mannerOf(configuration, location.root, options.publish)
    val fencing = if (coordinator.createsExclusively) "created only if it is not there: of two drivers one is refused"
    else "not created exclusively: two drivers would not be kept apart"
    logInfo(s"Run $run of ${location.root} begins as epoch ${coordinator.epoch}; the last committed batch is " +
      s"${coordinator.lastCommitted}, of ${coordinator.retainedEntries} that have an entry. Storage is $manner, and $fencing")
    made
  }

  /** The id in `<checkpoint>/metadata`, which Spark writes before a query's first batch and never changes. */
  private def queryIdIn(root: Path, configuration: Configuration, options: LogOptions): Option[UUID] = {
    val location = DstlEnvironment.location(root, configuration, options)
    val storage = environment.storage(location, configuration, options).checkpoint
    val file = new Path(root, "metadata")
    environment.waiting.answer(file, storage.run(Read(file, MaxMetadataLength), options.commitTimeoutMs)).flatMap {
      content =>
        JsonMethods.parseOpt(new String(content, UTF_8)).collect {
          case fields: JObject => fields \ "id"
        }.collect { case JString(id) => id }.flatMap(id => scala.util.Try(UUID.fromString(id)).toOption)
    }
  }

  /** A query that has ended must not stand in the way of one that goes on without coordination. */
  private def answer(executor: String, run: RunId, message: ToDriver): Future[FromDriver] = {
    endWhatIsOver(_ == run.root)
    runs.answer(executor, run, message)
  }

  private def watchOver(): Unit =
    environment.runtime.timer.schedule(WatchMillis) { () =>
      endWhatIsOver(_ => true)
      watchOver()
    }: Unit

  private def endWhatIsOver(isMeant: String => Boolean): Unit = {
    val over = synchronized {
      val over = driven.filter { case (root, run) => isMeant(root) && run.isOver }.toVector
      over.foreach { case (root, _) => driven.remove(root) }
      over
    }
    over.foreach { case (_, run) => endOf(run): Unit }
  }

  private def endOf(run: DrivenRun): Future[Unit] = {
    runs.end(run.coordinator.id): Unit
    run.end()
  }
}

private object DriverSide {
  private val WatchMillis = 5000L

  /** How long a run waits for what its predecessor in this process still has under way. */
  private val PredecessorMillis = 30000L
  private val MaxMetadataLength = 64L * 1024
  private val RememberedCheckpoints = 100
}
