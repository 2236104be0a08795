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

  /** If the state came from this task attempt's commit, it is to be loaded again before anything is built on it. */
  def drop(attempt: Long): Unit
}

/**
 * An executor's side of one run: what its tasks write, what the driver says of it, and what Spark's retention lets go.
 *
 * @param makeUploader
 *   makes the uploader of a run with this epoch, when the first chunk comes that is too large for a commit entry
 * @param makeSnapshotUploader
 *   makes that of its snapshots, when the first one comes
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
  import RunWorker._
  private implicit val executor: ExecutionContext = runtime.executor

  private val ask = new AskUntilAnswered(link, executorName, id, runtime)

  // Guarded by this.
  private var opening: Option[Future[FromDriver]] = None
  private var uploader: Option[LogUploader] = None
  private var uploads: Option[SegmentUploads] = None
  private var snapshots: Option[SnapshotUploads] = None
  private val stores = mutable.HashMap.empty[String, LocalStore]
  private val released = mutable.HashMap.empty[String, Long]
  private val loads = mutable.HashMap.empty[String, Int]
  private var releasing = false
  private var reportedBypass = false
  private var closed = false

  @volatile private var barrier: Option[BarrierReport] = None

  /**
   * The driver's word on this run; asked for once, and again after a failure. Fails when the driver does not answer for
   * `commit.timeout`.
   */
  def opened(): Future[FromDriver] = synchronized {
    opening.filterNot(_.value.exists(_.isFailure)).getOrElse {
      val asked = ask(ToDriver.Open, options.commitTimeoutMs).map(_.message)
      opening = Some(asked)
      asked
    }
  }

  /** Whether the driver coordinates the run, as far as it has been asked. */
  def isCoordinated: Boolean = synchronized(opening).exists(_.value.exists(_.toOption.exists {
    case _: FromDriver.Opened => true
    case _ => false
  }))

  /**
   * Where a task attempt writes. None if the driver coordinates no run here: changelogs are plain files then.
   *
   * @param partitions
   *   of the task's stage, which share what may be sealed inline
   */
  def task(attempt: Long, batch: Long, partitions: Int): Future[Option[TaskWriter]] = opened().flatMap {
    case FromDriver.Opened(_, epoch, inlineShare) =>
      val limit = inlineShare / math.max(1, partitions)
      val uploads = () => uploadsOnFirstUse(epoch)
      Future.successful(Some(new TaskWriter(attempt, batch, limit, options, id, ask, uploads, noteBarrier, runtime)))
    case FromDriver.NotCoordinated => Future.successful(None)
    case _ => Future.failed(ProtocolErrors.notCoordinated(id.root))
  }

  /** Where snapshots are uploaded to. None if the driver coordinates no run here. */
  def snapshotUploads(): Future[Option[SnapshotUploads]] = opened().map {
    case FromDriver.Opened(_, epoch, _) => Some(snapshotsOnFirstUse(epoch))
    case _ => None
  }

  /** Takes a message from the driver. */
  def receive(message: ToExecutor): Unit = message match {
    case ToExecutor.Flush => synchronized(uploads).foreach(_.flush())
    case ToExecutor.Drop(attempt, directories) =>
      synchronized(directories.flatMap(stores.get)).foreach(_.drop(attempt))
  }

  /** From now on the driver can have this store dropped. */
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

  /** The run's number among all runs on the checkpoint; None if the driver coordinates no run here. */
  def epoch(): Future[Option[Long]] = opened().map {
    case FromDriver.Opened(_, epoch, _) => Some(epoch)
    case _ => None
  }

  /** Spark's retention no longer needs versions of the store below `lowest`. The driver learns it in the background. */
  def release(storeDirectory: String, lowest: Long): Unit = {
    synchronized {
      released.updateWith(storeDirectory)(before => Some(math.max(lowest, before.getOrElse(0L))))
    }: Unit
    scheduleRelease()
  }

  /** The versions of a store that are in the log; None if the driver does not coordinate the run, or not any more. */
  def versions(storeDirectory: String): Future[Option[FromDriver.Versions]] =
    ask(ToDriver.ListStore(storeDirectory), options.commitTimeoutMs).map(_.message).map {
      case versions: FromDriver.Versions => Some(versions)
      case _ => None
    }

  /** Tells the driver, once, that changes bypass the log. */
  def bypass(why: String): Unit = {
    val first = synchronized {
      val first = !reportedBypass
      reportedBypass = true
      first
    }
    if (first) ask(ToDriver.Bypass(why), options.commitTimeoutMs): Unit
  }

  /** How the newest barrier went of which the driver has told. */
  def lastBarrier: Option[BarrierReport] = barrier

  /** Whether nothing is on its way to data files, and no store is registered. */
  def isIdle: Boolean = synchronized {
    stores.isEmpty && uploader.forall(_.bytesInFlight == 0) && snapshots.forall(_.bytesInFlight == 0)
  }

  /** Whether something is being uploaded, or the driver has not been told yet that it was. */
  def isUploading: Boolean = synchronized(uploads).exists(_.isBusy)

  /** Uploads what waits, at once: the executor may soon be gone. */
  def flush(): Unit = receive(ToExecutor.Flush)

  /** Takes nothing more. Completes when what is being uploaded has ended. */
  def close(): Future[Unit] = {
    val (last, lastSnapshots) = synchronized {
      closed = true
      (uploader, snapshots)
    }
    for {
      _ <- last.fold(Future.unit)(_.close())
      _ <- lastSnapshots.fold(Future.unit)(_.close())
    } yield ()
  }

  private def noteBarrier(report: BarrierReport): Unit = barrier = Some(report)

  private def uploadsOnFirstUse(epoch: Long): SegmentUploads = synchronized {
    if (closed) throw new IllegalStateException(s"the log of run ${id.run} is closed")
    uploads.getOrElse {
      val made = makeUploader(epoch)
      val wrapped = new SegmentUploads(made, ask, options.commitTimeoutMs, runtime)
      uploader = Some(made)
      uploads = Some(wrapped)
      wrapped
    }
  }

  private def snapshotsOnFirstUse(epoch: Long): SnapshotUploads = synchronized {
    if (closed) throw new IllegalStateException(s"the log of run ${id.run} is closed")
    snapshots.getOrElse {
      val made = new SnapshotUploads(
        makeSnapshotUploader(epoch),
        () => synchronized(uploader).exists(_.bytesInFlight > 0),
        runtime
      )
      snapshots = Some(made)
      made
    }
  }

  private def scheduleRelease(): Unit = {
    val first = synchronized {
      val first = !releasing && released.nonEmpty && !closed
      if (first) releasing = true
      first
    }
    if (first) runtime.timer.schedule(ReleaseDelayMillis)(() => sendReleases()): Unit
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
          logger.warn(s"Could not tell the driver what ${id.root} no longer needs; it is told with the next", error)
          synchronized {
            lowest.foreach { case (store, version) =>
              released.updateWith(store)(since => Some(math.max(version, since.getOrElse(0L))))
            }
          }
      }
    }
  }
}

private object RunWorker {
  private val logger = LoggerFactory.getLogger(classOf[RunWorker])

  /** Long enough for a store's maintenance to name all that it lets go. */
  private val ReleaseDelayMillis = 1000L
}
