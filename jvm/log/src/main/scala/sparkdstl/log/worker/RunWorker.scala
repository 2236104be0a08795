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

/** A store's live local state, as far as a worker is concerned with it. */
trait LocalStore {

  /** If the state came from this task attempt's commit, it is loaded again before the next use. */
  def drop(attempt: Long): Unit
}

/**
 * An executor's side of one run: what its tasks write, the driver's messages, and what Spark's retention releases.
 *
 * @param makeUploader makes the uploader of a run with this epoch, with the first chunk too large for a commit entry
 * @param makeSnapshotUploader makes that of its snapshots, with the first snapshot
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

  /** Long enough for a store's maintenance to release all that it does. */
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
  private var closed = false

  @volatile private var barrier: Option[BarrierReport] = None

  /** The driver's answer to the first message; requested again after a failure. Fails after `commit.timeout`. */
  def opened(): Future[FromDriver] = synchronized {
    opening.filterNot(_.value.exists(_.isFailure)).getOrElse {
      val asked = ask(ToDriver.Open, options.commitTimeoutMs).map(_.message)
      opening = Some(asked)
      asked
    }
  }

  /** Whether the driver is known to coordinate the run. */
  def isCoordinated: Boolean =
    synchronized(opening).flatMap(_.value).exists(_.toOption.exists(_.isInstanceOf[FromDriver.Opened]))

  /**
   * Where a task attempt writes. None if the driver coordinates no run here: changelogs are plain files then.
   *
   * @param partitions of the task's stage, which share what may be sealed inline
   */
  def task(attempt: Long, batch: Long, partitions: Int): Future[Option[TaskWriter]] = opened().flatMap {
    case FromDriver.Opened(_, epoch, inlineShare) =>
      val limit = inlineShare / math.max(1, partitions)
      def noteBarrier(report: BarrierReport): Unit = barrier = Some(report)
      Future.successful(Some(
        new TaskWriter(attempt, batch, limit, options, id, ask, () => uploadsOf(epoch), noteBarrier, runtime)
      ))
    case FromDriver.NotCoordinated => Future.successful(None)
    case _ => Future.failed(ProtocolErrors.notCoordinated(id.root))
  }

  /** Where snapshots are uploaded to. None if the driver coordinates no run here. */
  def snapshotUploads(): Future[Option[SnapshotUploads]] = epoch().map(_.map(snapshotUploadsOf))

  /** The run's number among all runs on the checkpoint; None if the driver coordinates no run here. */
  def epoch(): Future[Option[Long]] = opened().map {
    case FromDriver.Opened(_, epoch, _) => Some(epoch)
    case _ => None
  }

  /** Takes a message from the driver. */
  def receive(message: ToExecutor): Unit = message match {
    case ToExecutor.Flush => flush()
    case ToExecutor.Drop(attempt, directories) =>
      synchronized(directories.flatMap(stores.get)).foreach(_.drop(attempt))
  }

  /** From now on the driver can drop this store. */
  def register(storeDirectory: String, store: LocalStore): Unit = synchronized(stores.put(storeDirectory, store)): Unit

  def unregister(storeDirectory: String, store: LocalStore): Unit = synchronized {
    if (stores.get(storeDirectory).exists(_ eq store)) stores.remove(storeDirectory): Unit
  }

  /** The store was loaded from storage. Returns how often it was, in this run. */
  def loaded(storeDirectory: String): Int = synchronized {
    val times = loads.getOrElse(storeDirectory, 0) + 1
    loads.put(storeDirectory, times)
    times
  }

  /** Spark's retention no longer needs versions of the store below `lowest`. The driver learns it in the background. */
  def release(storeDirectory: String, lowest: Long): Unit = {
    noteReleased(Seq(storeDirectory -> lowest))
    scheduleRelease()
  }

  /** The versions of a store that are in the log; None if the driver does not coordinate the run. */
  def versions(storeDirectory: String): Future[Option[FromDriver.Versions]] =
    ask(ToDriver.ListStore(storeDirectory), options.commitTimeoutMs).map(_.message).map {
      case versions: FromDriver.Versions => Some(versions)
      case _ => None
    }

  /** Reports to the driver, once, that changes bypass the log. */
  def bypass(why: String): Unit = {
    val isFirst = synchronized {
      val isFirst = !reportedBypass
      reportedBypass = true
      isFirst
    }
    if (isFirst) ask(ToDriver.Bypass(why), options.commitTimeoutMs): Unit
  }

  /** The newest barrier that the driver has reported. */
  def lastBarrier: Option[BarrierReport] = barrier

  /** Whether nothing is on its way to data files, and no store is registered. */
  def isIdle: Boolean = synchronized {
    stores.isEmpty && uploads.forall(_.bytesInFlight == 0) && snapshots.forall(_.bytesInFlight == 0)
  }

  /** Whether an upload is under way, or has ended and was not reported to the driver. */
  def isUploading: Boolean = synchronized(uploads).exists(_.isBusy)

  /** Uploads at once what waits: the executor may end soon. */
  def flush(): Unit = synchronized(uploads).foreach(_.flush())

  /** Takes nothing more. Completes when uploads have ended. */
  def close(): Future[Unit] = {
    val (last, lastSnapshots) = synchronized {
      closed = true
      (uploads, snapshots)
    }
    for {
      _ <- last.fold(Future.unit)(_.close())
      _ <- lastSnapshots.fold(Future.unit)(_.close())
    } yield ()
  }

  private def uploadsOf(epoch: Long): SegmentUploads = synchronized {
    refuseIfClosed()
    val of = uploads.getOrElse(new SegmentUploads(makeUploader(epoch), ask, options.commitTimeoutMs, runtime))
    uploads = Some(of)
    of
  }

  private def snapshotUploadsOf(epoch: Long): SnapshotUploads = synchronized {
    refuseIfClosed()
    def isLogBusy = synchronized(uploads).exists(_.bytesInFlight > 0)
    val of = snapshots.getOrElse(new SnapshotUploads(makeSnapshotUploader(epoch), () => isLogBusy, runtime))
    snapshots = Some(of)
    of
  }

  private def refuseIfClosed(): Unit =
    if (closed) throw new IllegalStateException(s"the log of run ${id.run} is closed")

  private def noteReleased(lowest: Seq[(String, Long)]): Unit = synchronized {
    lowest.foreach { case (store, version) =>
      released.put(store, math.max(version, released.getOrElse(store, 0L)))
    }
  }

  private def scheduleRelease(): Unit = {
    val isFirst = synchronized {
      val isFirst = !releasing && released.nonEmpty && !closed
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
          logger.warn(s"Could not tell the driver what ${id.root} no longer needs; the next message repeats it", error)
          noteReleased(lowest)
      }
    }
  }
}
