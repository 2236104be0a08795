// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}
import scala.util.{Failure, Success}

import org.slf4j.LoggerFactory

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport._
import sparkdstl.log.upload.LogUploader

/** The local state of an open store. */
trait LocalStore {

  /** Marks the state as outdated if this attempt's commit has produced it: the store is loaded again before its next use. */
  def drop(attempt: Long): Unit
}

/**
 * An executor's side of one run: writers of its tasks, messages of the driver, and releases by Spark's retention. The
 * uploaders for an epoch are made at the first chunk and at the first snapshot.
 */
final class RunWorker(
    val id: RunId,
    executorName: String,
    link: DriverLink,
    makeUploader: Long => LogUploader,
    makeSnapshotUploader: Long => LogUploader,
    options: LogOptions,
    runtime: ProtocolRuntime
) {
  private val logger = LoggerFactory.getLogger(classOf[RunWorker])

  /** Collects the releases of one maintenance of a store. */
  private final val ReleaseDelayMillis = 1000L
  private implicit val executor: ExecutionContext = runtime.executor

  private val ask = new AskUntilAnswered(link, executorName, id, runtime)

  // Guarded by this.
  private var opening: Option[Future[FromDriver]] = None
  private var uploads: Option[SegmentUploads] = None
  private var snapshots: Option[SnapshotUploads] = None
  private val stores = mutable.HashMap.empty[String, LocalStore]
  private val released = mutable.HashMap.empty[String, Long]
  private val loads = mutable.HashMap.empty[String, Int]
  private var releasing = false
  private var reportedBypass = false

  @volatile private var barrier: Option[BarrierReport] = None
  // Guarded by this. The lengths of the newest entries that the driver has reported since its first answer, by batch.
  private val reported = mutable.LinkedHashMap.empty[Long, Long]

  /** The driver's answer to [[ToDriver.Open]], which is sent once, and again after a failure. Fails after `commit.timeout`. */
  def opened(): Future[FromDriver] = synchronized {
    opening.filterNot(_.value.exists(_.isFailure)).getOrElse {
      val asked = ask(ToDriver.Open, options.commitTimeoutMs).map(_.message)
      opening = Some(asked)
      asked
    }
  }

  /** Whether the driver has answered that it coordinates the run. */
  def isCoordinated: Boolean =
    answered.exists(_.isInstanceOf[FromDriver.Opened])

  /** The length of an entry, if the driver has told it. */
  def entryLength(batch: Long): Option[Long] = synchronized(reported.get(batch)).orElse {
    answered.collect { case opened: FromDriver.Opened => opened }.flatMap(_.entryLengths.get(batch))
  }

  private def answered: Option[FromDriver] = synchronized(opening).flatMap(_.value).flatMap(_.toOption)

  /**
   * The writer of a task attempt; None if the driver does not coordinate the run, so that changelogs are plain files. All
   * `partitions` of the stage share the limit of inline bytes.
   */
  def task(attempt: Long, batch: Long, partitions: Int): Future[Option[TaskWriter]] = opened().flatMap {
    case FromDriver.Opened(_, epoch, inlineShare, _) =>
      val limit = inlineShare / math.max(1, partitions)
      def noteBarrier(report: BarrierReport): Unit = {
        barrier = Some(report)
        synchronized {
          reported.put(report.batch, report.entryBytes)
          if (reported.size > RunWorker.ReportedEntries) reported.remove(reported.head._1)
        }: Unit
      }
      Future.successful(Some(
        new TaskWriter(attempt, batch, limit, options, id, ask, () => uploadsOf(epoch), noteBarrier, runtime)
      ))
    case FromDriver.NotCoordinated => Future.successful(None)
    case _ => Future.failed(ProtocolErrors.notCoordinated(id.root))
  }

  /** The uploads of snapshots; None if the driver does not coordinate the run. */
  def snapshotUploads(): Future[Option[SnapshotUploads]] = epoch().map(_.map(snapshotUploadsOf))

  /** The epoch of the run; None if the driver does not coordinate it. */
  def epoch(): Future[Option[Long]] = opened().map {
    case FromDriver.Opened(_, epoch, _, _) => Some(epoch)
    case _ => None
  }

  def receive(message: ToExecutor): Unit = message match {
    case ToExecutor.Flush => flush()
    case ToExecutor.Drop(attempt, directories) =>
      synchronized(directories.flatMap(stores.get)).foreach(_.drop(attempt))
  }

  /** Registers a store for [[ToExecutor.Drop]]. */
  def register(storeDirectory: String, store: LocalStore): Unit = synchronized(stores.put(storeDirectory, store)): Unit

  def unregister(storeDirectory: String, store: LocalStore): Unit = synchronized {
    if (stores.get(storeDirectory).exists(_ eq store)) stores.remove(storeDirectory): Unit
  }

  /** Counts a load of the store from storage, and returns the number of loads in this run. */
  def loaded(storeDirectory: String): Int = synchronized {
    val times = loads.getOrElse(storeDirectory, 0) + 1
    loads.put(storeDirectory, times)
    times
  }

  /** Reports to the driver, in the background, that Spark's retention needs no version of the store below `lowest`. */
  def release(storeDirectory: String, lowest: Long): Unit = {
    noteReleased(Seq(storeDirectory -> lowest))
    scheduleRelease()
  }

  /** The versions of a store in the log; None if the driver does not coordinate the run. Opens the run meanwhile. */
  def versions(storeDirectory: String): Future[Option[FromDriver.Versions]] = {
    val opening = opened()
    ask(ToDriver.ListStore(storeDirectory), options.commitTimeoutMs).map(_.message).flatMap {
      case versions: FromDriver.Versions => opening.transform(_ => Success(Some(versions)))
      case _ => Future.successful(None)
    }
  }

  /** Reports to the driver, once, that changes bypass the log. */
  def bypass(why: String): Unit = {
    val isFirst = synchronized {
      val isFirst = !reportedBypass
      reportedBypass = true
      isFirst
    }
    if (isFirst) ask(ToDriver.Bypass(why), options.commitTimeoutMs).failed.foreach { error =>
      logger.warn(s"The driver of ${id.root} was not told that changes bypass the log", error)
      synchronized { reportedBypass = false }
    }
  }

  def lastBarrier: Option[BarrierReport] = barrier

  /** Whether no upload is under way or not yet reported to the driver, and no store is registered. */
  def isIdle: Boolean = synchronized {
    stores.isEmpty && !uploads.exists(_.isBusy) && snapshots.forall(_.bytesInFlight == 0)
  }

  /** Whether an upload is under way or not yet reported to the driver. */
  def isUploading: Boolean = synchronized(uploads).exists(_.isBusy)

  def flush(): Unit = synchronized(uploads).foreach(_.flush())

  private def uploadsOf(epoch: Long): SegmentUploads = synchronized {
    val of = uploads.getOrElse(new SegmentUploads(makeUploader(epoch), ask, options.commitTimeoutMs, runtime))
    uploads = Some(of)
    of
  }

  private def snapshotUploadsOf(epoch: Long): SnapshotUploads = synchronized {
    def isLogBusy = synchronized(uploads).exists(_.bytesInFlight > 0)
    val of = snapshots.getOrElse(new SnapshotUploads(makeSnapshotUploader(epoch), () => isLogBusy, runtime))
    snapshots = Some(of)
    of
  }

  private def noteReleased(lowest: Seq[(String, Long)]): Unit = synchronized {
    lowest.foreach { case (store, version) =>
      released.put(store, math.max(version, released.getOrElse(store, 0L)))
    }
  }

  private def scheduleRelease(): Unit = {
    val isFirst = synchronized {
      val isFirst = !releasing && released.nonEmpty
      if (isFirst) releasing = true
      isFirst
    }
    if (isFirst) runtime.timer.schedule(ReleaseDelayMillis)(() => sendReleases()): Unit
  }

  private def sendReleases(): Unit = {
    val lowest = synchronized {
      val all = released.toVector
      released.clear()
      all
    }
    ask(ToDriver.Release(lowest), options.commitTimeoutMs).onComplete { answer =>
      synchronized { releasing = false }
      answer match {
        case Success(_) => scheduleRelease()
        case Failure(error) =>
          logger.warn(
            s"Could not report released versions of ${id.root} to the driver; the next message repeats it",
            error
          )
          noteReleased(lowest)
      }
    }
  }
}

private object RunWorker {

  /** More than the log usually has: a changed store is snapshotted after 200 versions. */
  private val ReportedEntries = 1000
}
