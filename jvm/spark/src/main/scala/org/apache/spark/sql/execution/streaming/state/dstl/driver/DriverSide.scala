// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean

import scala.collection.mutable
import scala.concurrent.{Await, ExecutionContext, Future, Promise, TimeoutException}
import scala.concurrent.duration._
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.json4s.JsonAST.{JObject, JString}
import org.json4s.jackson.JsonMethods

import sparkdstl.log.config.{LogOptions, OverlapMode}
import sparkdstl.log.coordinator._
import sparkdstl.log.coordinator.ownership.BasePathOwner
import sparkdstl.log.coordinator.retention.{Deleter, HiddenSnapshots}
import sparkdstl.log.error.{Causes, LogErrors, LostObjectException, ProtocolErrors}
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.format.CommitEntry
import sparkdstl.log.read.{EntryReader, WayBack}
import sparkdstl.log.request.{QueryStorage, StorageClient}
import sparkdstl.log.storage.{HadoopLogStorage, KnownFiles}
import sparkdstl.log.storage.StorageOperation.Read
import sparkdstl.log.transport.{FromDriver, RunId, ToDriver}

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.internal.Logging
import org.apache.spark.util.Utils
import org.apache.spark.sql.execution.streaming.state.dstl.runtime._
import org.apache.spark.sql.execution.streaming.state.dstl.transport._
import org.apache.spark.sql.internal.SQLConf

/**
 * A run of a streaming query that this driver coordinates, while the query's thread is alive.
 *
 * @param overlaps whether options, sink and sources allow tasks before the offsets are durable; for the query's thread, after
 *   Spark has made the query's plan
 * @param read by the start of the run
 * @param isStarting as in [[sparkdstl.log.request.Requests]]; ends with the first commit that begins, so that no batch is lost
 */
private[dstl] final class DrivenRun(
    val coordinator: RunCoordinator,
    val reports: AttemptReports,
    storage: QueryStorage,
    drivenBy: Thread,
    read: KnownFiles,
    isStarting: AtomicBoolean,
    overlaps: => Boolean
) {
  private val isOwned = new AtomicBoolean
  @volatile private var known = Option(read)

  /** Writes the files of the checkpoint that plan a batch: the end of the run waits for these writes. */
  def client: StorageClient = storage.checkpoint

  /** Whether the files that plan the next batch may be written while its tasks run. Called by the query's thread. */
  def mayPlanAhead: Boolean = coordinator.mayPlanAhead && overlaps

  /** What the start has read, until the first commit of the run. */
  def start: Option[KnownFiles] = known.filter(_ => coordinator.isAtWork)

  /** Whether the run has committed a batch. */
  def hasCommitted: Boolean = known.isEmpty

  /** Commits a batch; see [[RunCoordinator.commit]]. */
  def commit(batch: Long, content: Array[Byte]): Future[Unit] = {
    isStarting.set(false)
    coordinator.commit(batch, content, reports.take(batch)).map(_ => noteCommitted())(ExecutionContext.parasitic)
  }

  /** Forgets what the start has read, because a batch of the query is committed. */
  def noteCommitted(): Unit = {
    isStarting.set(false)
    known = None
  }

  def isOver: Boolean = !drivenBy.isAlive

  /** The first file manager that calls this owns the run and writes its commit entries; false for all others. */
  def own(): Boolean = isOwned.compareAndSet(false, true)

  /** Ends the run, and then its requests. Completes when no write is under way, or `millis` after the end. */
  def end(millis: Long): Future[Unit] = coordinator.close().transformWith { ended =>
    storage.close()
    storage.runtime.within(millis, storage.whenQuiet)(()).transform(_ => ended)(ExecutionContext.parasitic)
  }(ExecutionContext.parasitic)
}

/**
 * The driver's side of a process: its endpoint, and the runs that it coordinates.
 *
 * @param sparkEnded called when the Spark environment ends
 */
private[dstl] final class DriverSide(env: SparkEnv, resources: ProcessResources, sparkEnded: () => Unit)
    extends Logging
    with AutoCloseable {
  import DriverSide._

  val runs = new CoordinatedRuns
  val metrics = new CommitMetrics
  private val executors = new ExecutorDirectory

  // Guarded by this, by checkpoint root.
  private val driven = mutable.HashMap.empty[String, DrivenRun]
  // The ids of queries whose `metadata` Spark has read at their newest start.
  private val queries = mutable.LinkedHashMap.empty[String, UUID]
  // Entries whose deletion was requested while no run was active, and that still exist.
  private val unowned = mutable.LinkedHashMap.empty[String, Set[Long]]
  private var isClosed = false

  /** Registers the endpoint that executors send to. */
  def open(): Unit = {
    val endpoint = new DriverEndpoint(env.rpcEnv, answer, runs, executors, sparkEnded)
    try {
      env.rpcEnv.setupEndpoint(Rpc.DriverName, endpoint): Unit
      val removed = new RemovedExecutors(runs, resources.runtime.timer)
      SparkContext.getActive.foreach(_.listenerBus.addToManagementQueue(removed))
      watchOver()
    } catch { case _: IllegalStateException => sparkEnded() } // Spark has ended already.
  }

  /** The run on a checkpoint, while its query's thread is alive. */
  def on(root: Path): Option[DrivenRun] = synchronized(driven.get(root.toString).filterNot(_.isOver))

  /** The run that the calling thread drives on this checkpoint. */
  def drivenHere(root: Path): Option[DrivenRun] =
    for {
      query <- StreamThread.query
      run <- on(root) if run.coordinator.run == query.run
    } yield run

  /**
   * Begins a run if the calling thread drives the query of this checkpoint and has not begun one yet. Any other use of the
   * checkpoint begins nothing, on this thread or another.
   */
  def beginIfDriven(checkpoint: Checkpoint): Unit =
    StreamThread.query.filter(_ => isStarting).filter(query => queryIdIn(checkpoint).contains(query.query))
      .foreach(query => begin(checkpoint, query.run))

  /** What the start of a run has read of the checkpoint in which the path is. */
  def startOf(path: Path): Option[KnownFiles] = around(path).flatMap(_.start)

  /** Whether a run on the checkpoint in which the path is has committed a batch. */
  def hasCommitted(path: Path): Boolean = around(path).exists(run => run.hasCommitted && !run.isOver)

  private def around(path: Path): Option[DrivenRun] = synchronized {
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null).flatMap(of => driven.get(of.toString)).nextOption()
  }

  /** Notes the content of `metadata` at the start of a query; None if the file does not exist. */
  def foundMetadata(root: Path, content: Option[Array[Byte]]): Unit = {
    val id = content.flatMap(queryId)
    synchronized(remember(queries, root.toString, id))
  }

  /** Runs `body`; if it fails because an object is damaged or missing, the error names the way out. */
  def explained[T](checkpoint: Checkpoint)(body: => T): T =
    try body
    catch {
      case lost: LostObjectException if !lost.isExplained =>
        throw resources.waiting.on(new WayBack(resources.storage(checkpoint)).explain(lost))
    }

  /** Deletes an entry of a checkpoint without an active run, unless it may be needed. */
  def deleteUnowned(checkpoint: Checkpoint, batch: Long): Unit = {
    val root = checkpoint.root.toString
    val storage = resources.storage(checkpoint)
    val deleter = new Deleter(storage, new EntryReader(storage, RunLimits().fetchLength))
    val before = synchronized(unowned.getOrElse(root, Set.empty[Long]))
    try {
      val left = resources.waiting.on(deleter.deleteUnowned(batch, before))
      synchronized(remember(unowned, root, Option(left).filter(_.nonEmpty)))
    } finally {
      // A run that begins meanwhile may create the entry again.
      val quiet = resources.runtime.within(PredecessorMillis, storage.whenQuiet)(())
      runs.busyUntil(root, quiet)(resources.runtime.executor)
    }
  }

  /** Whether the calling thread drives a query that has not begun its run. */
  def isStarting: Boolean = StreamThread.query.exists { query =>
    synchronized(!driven.valuesIterator.exists(_.coordinator.run == query.run))
  }

  /** Ends the run on a checkpoint; returns when all its requests are over, after a bounded time. */
  def endOn(root: Path): Unit = {
    synchronized(driven.remove(root.toString)).foreach(end)
    // Also those of runs before it.
    resources.waiting.on(resources.runtime.within(PredecessorMillis, runs.whenQuiet(root.toString))(()))
  }

  private def begin(checkpoint: Checkpoint, run: UUID): Unit = {
    import checkpoint.{options, root}
    import resources.{application, runtime, waiting}
    endOn(root)
    val isStarting = new AtomicBoolean(true)
    val storage = resources.storage(checkpoint, () => isStarting.get)
    def checkpointAt(other: Path) =
      resources.storage(checkpoint.copy(root = other), () => isStarting.get).checkpoint
    val known = new KnownFiles(Thread.currentThread())
    val files = new CheckpointFiles(root, checkpoint.configuration, options, resources)
    val reads = new StartReads(root, files, known)(runtime.executor)
    reads.begin()
    waiting.on(new BasePathOwner(storage, checkpointAt).claim())
    val context = SparkContext.getActive.getOrElse(throw ProtocolErrors.sparkStopped())
    val reports = new AttemptReports(context)
    val host = Utils.localCanonicalHostName()
    val setup = RunSetup(run, host, application, reports.id, options, plainSnapshots = BuiltFor.Line == "3.5")
    val shared = DriverResources(executors, resources.inlineBudget, metrics)
    val stopping = FailPoints.ofTests.fold(storage)(_.beforeCommitEntries(storage))
    val beginning = RunFactory.begin(stopping, setup, shared)
    // The start may be interrupted while storage answers: without an end its claim looks like that of a run.
    def abandon(): Unit = {
      implicit val executor: ExecutionContext = runtime.executor
      runs.busyUntil(root.toString, beginning.flatMap(_.coordinator.close()).recover { case NonFatal(_) => () })
    }
    val begun = Causes.cleaningUp(abandon())(explained(checkpoint)(waiting.on(beginning)))
    import begun.coordinator
    val made =
      new DrivenRun(coordinator, reports, storage, Thread.currentThread(), known, isStarting, mayOverlap(options))
    // Else the claim of a start that fails looks like that of a run.
    Causes.cleaningUp(end(made)) {
      val finished = explained(checkpoint) {
        begun.newest.foreach(CheckpointFormat.check(_, SQLConf.get))
        val finished = finishRepartition(begun, storage, files)
        if (finished.isEmpty)
          begun.missingOffsets.foreach(batch => throw LogErrors.missingOffsets(storage.location.offsetsOf(batch)))
        // Only at the start that leaves the log.
        if (!options.logsChanges && coordinator.stores.nonEmpty)
          deleteHidden(storage, coordinator.lastCommitted)
        // A repartition has no log.
        if (begun.newest.isEmpty)
          StreamThread.query.flatMap(_.execution).foreach(FileSinkLog.complete(_, coordinator.lastCommitted) { batch =>
            repartitioned(batch, storage, files).nonEmpty
          })
        finished
      }
      reads.claimed(begun)
      finished.foreach(known.changed)
      restoreDirectories(checkpoint, coordinator.stores, reads)
    }
    QueryShims.noteRun(run)
    synchronized(driven.put(root.toString, made)): Unit
    runs.begin(coordinator): Unit
    val manner = HadoopLogStorage.mannerOf(resources.fileSystem(root, checkpoint.configuration), root, options.publish)
    val fencing = if (coordinator.createsExclusively) "created only if it is not there: of two drivers one is refused"
    else "not created exclusively: two drivers would not be kept apart"
    logInfo(s"Run $run of $root begins as epoch ${coordinator.epoch}; the last committed batch is " +
      s"${coordinator.lastCommitted}, of ${coordinator.retainedEntries} that have an entry. Storage is $manner, and $fencing")
    if (options.simulatedSlownessMs > 0)
      logWarning(
        s"Each request for a file of $root is delayed, half of them for more than ${options.simulatedSlownessMs} ms: " +
          s"${LogOptions.Prefix}${LogOptions.SimulateSlowStorage.key} is set, which is for trials and not for production"
      )
  }

  /**
   * Creates the missing directories of these stores' partitions, in the background unless there is no directory of states at
   * all: Spark fails without it, although the log has all states.
   */
  private def restoreDirectories(checkpoint: Checkpoint, stores: Set[String], reads: StartReads): Unit = {
    val restored = new PartitionDirectories(checkpoint, resources).restore(stores).recover { case NonFatal(error) =>
      logWarning(error.getMessage)
    }(resources.runtime.executor)
    if (stores.nonEmpty) resources.waiting.on(reads.awaitState(restored))
  }

  private def deleteHidden(storage: QueryStorage, newest: Long): Unit = {
    val deleted = resources.waiting.on(HiddenSnapshots.delete(storage, newest))
    if (deleted.nonEmpty)
      logInfo(
        s"Deleted what an interrupted repartition has left, which without the log would be taken for the state of " +
          s"later batches: ${deleted.mkString(", ")}"
      )
  }

  /** Writes the offsets of a repartition that was interrupted after its commit entry, which has them; returns their file. */
  private def finishRepartition(begun: BegunRun, storage: QueryStorage, files: CheckpointFiles): Option[Path] = for {
    batch <- begun.committedWithoutOffsets
    offsets <- repartitioned(batch, storage, files)
  } yield {
    val file = storage.location.offsetsOf(batch)
    files.create(file, offsets, storage.checkpoint)
    logInfo(s"$file was missing, and is now as the repartition in batch $batch has noted it")
    file
  }

  /** The offsets in the commit entry of a repartition; None of any other batch. */
  private def repartitioned(batch: Long, storage: QueryStorage, files: CheckpointFiles): Option[Array[Byte]] =
    resources.waiting.on(files.content(storage.location.entry(batch), None)).filter(_.isWhole)
      .flatMap(entry => CommitEntry.offsetsOfRepartition(entry.bytes))

  private def mayOverlap(options: LogOptions): Boolean = options.overlapOffsets match {
    case OverlapMode.Never => false
    case _ if OverlapRules.writesPlainSnapshots(SQLConf.get) => false
    case OverlapMode.Always => true
    case OverlapMode.Auto => StreamThread.query.flatMap(_.execution).exists(OverlapRules.allow)
  }

  /** The id in `<checkpoint>/metadata`, which Spark writes before a query's first batch and never changes. */
  private def queryIdIn(checkpoint: Checkpoint): Option[UUID] = {
    val file = new Path(checkpoint.root, "metadata")
    synchronized(queries.get(checkpoint.root.toString)).orElse(
      resources.waiting.on(resources.storage(checkpoint).read(file, Read(file, MaxMetadataLength))).flatMap(queryId)
    )
  }

  private def queryId(metadata: Array[Byte]): Option[UUID] =
    JsonMethods.parseOpt(new String(metadata, UTF_8)).collect { case fields: JObject => fields \ "id" }
      .collect { case JString(id) => id }.flatMap(id => Try(UUID.fromString(id)).toOption)

  /** The run of a query that has ended is ended first, because the next query may not be coordinated. */
  private def answer(executor: String, run: RunId, message: ToDriver): Future[FromDriver] = {
    endWhatIsOver(_ == run.root)
    runs.answer(executor, run, message)
  }

  private def watchOver(): Unit =
    resources.runtime.timer.schedule(WatchMillis) { () =>
      endWhatIsOver(_ => true)
      watchOver()
    }: Unit

  private def endWhatIsOver(isMeant: String => Boolean): Unit = {
    val over = synchronized {
      val over = driven.filter { case (root, run) => !isClosed && isMeant(root) && run.isOver }.toVector
      over.map { case (root, run) =>
        driven.remove(root)
        // A run that begins before the end of this one waits for it.
        val ending = Promise[Unit]()
        runs.busyUntil(root, ending.future)(resources.runtime.executor)
        run -> ending
      }
    }
    over.foreach { case (run, ending) =>
      end(run)
      ending.success(())
    }
  }

  /**
   * Ends all runs, as Spark ends. Returns when they have marked their ends and have no request under way, or after
   * [[EndMillis]], because storage may not answer.
   */
  override def close(): Unit = {
    // A query that is still running finds its run, which commits nothing any more.
    val open = synchronized {
      isClosed = true
      driven.values.toVector
    }
    open.foreach(end)
    try Await.ready(runs.whenAllQuiet()(resources.runtime.executor), EndMillis.millis): Unit
    catch {
      case _: TimeoutException =>
        logInfo(
          s"Spark ends before all runs on ${open.map(_.coordinator.id.root).mkString(", ")} have marked their ends: " +
            "dstl commands that change a checkpoint need --stopped for a while"
        )
    }
  }

  private def end(run: DrivenRun): Unit = {
    implicit val executor: ExecutionContext = resources.runtime.executor
    val id = run.coordinator.id
    runs.end(id): Unit
    runs.busyUntil(
      id.root,
      run.end(PredecessorMillis).recover { case NonFatal(error) =>
        logWarning(s"The run ${id.run} on ${id.root} ended with an error", error)
      }
    )
  }
}

private object DriverSide {
  private val WatchMillis = 5000L

  /** How long the end of Spark waits for the ends of runs. */
  private val EndMillis = 5000L

  /** How long a run waits for runs before it in this process, and for their requests. */
  private val PredecessorMillis = 30000L
  private val MaxMetadataLength = 64L * 1024
  private val RememberedCheckpoints = 100

  /** Replaces the value of a checkpoint, and forgets the one that was set first if there are too many. */
  private def remember[A](of: mutable.LinkedHashMap[String, A], root: String, value: Option[A]): Unit = {
    of.remove(root)
    value.foreach { now =>
      if (of.size >= RememberedCheckpoints) of.remove(of.head._1)
      of.put(root, now): Unit
    }
  }
}
