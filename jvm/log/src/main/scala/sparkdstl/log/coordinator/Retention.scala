package sparkdstl.log.coordinator

import scala.collection.{immutable, mutable}
import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.QueryLocation
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Deletes commit entries, and the data files they name, when nobody needs them any more.
 *
 * An entry of batch N is needed by a store while the lowest version that the store retains (its low-water mark) is not
 * above N + 1. A store that has not told its mark needs everything. An entry goes once Spark has asked for its deletion and no
 * store needs it; entries without a log hold no state and go when Spark asks. The newest entry goes at once when
 * somebody asks: that is a user going back.
 *
 * Work happens in the background, one round at a time; what fails is tried again in the next round. Thread-safe.
 *
 * @param stores
 *   directories of the stores in the newest entry with a log, before this run commits one
 * @param onFailure
 *   told of each deletion that failed, with its error
 */
private[coordinator] final class Retention(
    location: QueryLocation,
    checkpoint: StorageClient,
    log: StorageClient,
    entries: EntryReader,
    existing: Vector[Long],
    stores: Set[String],
    timeoutMillis: Long,
    runtime: ProtocolRuntime,
    onFailure: Throwable => Unit
) {
  private implicit val executor: ExecutionContext = runtime.executor

  // All guarded by this.
  private var known: immutable.TreeSet[Long] = immutable.TreeSet.from(existing)
  private val asked = mutable.TreeSet.empty[Long]
  private val ownFiles = mutable.HashMap.empty[Long, Set[String]]
  private val withoutLog = mutable.HashSet.empty[Long]
  // Entries of before this run of which it is not known whether they have a log.
  private val unread = mutable.HashSet.from(existing)
  private var liveStores = stores
  private val marks = mutable.HashMap.empty[String, Long]
  private var rounds: Future[Unit] = Future.unit
  private var closed = false

  /** This run has committed `batch`. */
  def committed(batch: Long, storeDirectories: Set[String], files: Set[String]): Unit = {
    synchronized {
      known += batch
      if (storeDirectories.isEmpty) withoutLog += batch
      else if (storeDirectories != liveStores) {
        liveStores = storeDirectories
        marks.filterInPlace((store, _) => storeDirectories(store)): Unit
      }
      if (files.nonEmpty) ownFiles.put(batch, files): Unit
    }
    nextRound()
  }

  /** Nobody needs versions below these of these stores. Marks never go down. */
  def release(lowest: Seq[(String, Long)]): Unit = {
    synchronized {
      lowest.foreach { case (store, version) =>
        marks.updateWith(store)(before => Some(math.max(version, before.getOrElse(0L))))
      }
    }
    nextRound()
  }

  /** The versions of a store that entries with a log hold and that it has not released, in ascending order. */
  def versions(storeDirectory: String): Vector[Long] = synchronized {
    val lowest = marks.getOrElse(storeDirectory, 0L)
    known.iterator.filterNot(withoutLog).map(_ + 1).filter(_ >= lowest).toVector
  }

  /**
   * Somebody wants the entry of `batch` deleted. Completes when that has been done or noted: an entry that is still
   * needed goes later. Fails if it is to go at once and could not be deleted. What this run has never seen is not part
   * of what it retains, and goes at once.
   */
  def askedToDelete(batch: Long): Future[Unit] = {
    val goingBack = synchronized {
      if (known(batch)) asked += batch
      if (!known(batch)) Some(Vector(batch))
      else if (known.lastOption.contains(batch)) {
        val below = known.toVector.reverse.drop(1).takeWhile(asked)
        // A run that reaches the oldest entry was a purge of everything that came before.
        val taken = if (below.size == known.size - 1) Vector(batch) else batch +: below
        Some(taken)
      } else None
    }
    goingBack match {
      case None =>
        nextRound()
        Future.unit
      case Some(taken) => goBack(taken)
    }
  }

  /** Batches that have an entry, as far as this run knows, in ascending order. */
  def batches: Vector[Long] = synchronized(known.toVector)

  /** Deletes nothing any more. Completes when what is under way has ended. */
  def close(): Future[Unit] = synchronized {
    closed = true
    rounds
  }

  /** From the newest down, so that a stop in between leaves a checkpoint that is one. */
  private def goBack(batches: Vector[Long]): Future[Unit] =
    batches.foldLeft(Future.unit) { (before, batch) =>
      before.flatMap(_ => checkpoint.delete(Seq(location.entry(batch)), timeoutMillis)).flatMap(_.asFuture)
        .map(_ => gone(batch))
    }

  private def nextRound(): Unit = synchronized {
    if (!closed && rounds.isCompleted && (deletable.nonEmpty || unclear.nonEmpty))
      rounds = round().recover { case error => onFailure(error) }
  }

  /** What Spark has asked for and nobody needs, the oldest first. Lock held. */
  private def deletable: Vector[Long] = {
    val needed = liveStores.iterator.map(marks.getOrElse(_, 0L)).minOption.getOrElse(0L) - 1
    asked.iterator.filter(batch => batch < needed || withoutLog(batch)).take(Retention.RoundSize).toVector
  }

  /** What might be deletable if it were known to have no log. Lock held. */
  private def unclear: Vector[Long] = asked.iterator.filter(unread).take(Retention.ReadsInRound).toVector

  private def round(): Future[Unit] = {
    val (batches, toRead) = synchronized {
      val batches = deletable
      (batches, if (batches.isEmpty) unclear else Vector.empty)
    }
    for {
      _ <- Future.sequence(toRead.map(classify))
      files <- Future.sequence(batches.map(filesOf)).map(_.flatten)
      _ <- deleteAll(log, files.map(location.file))
      _ <- deleteAll(checkpoint, batches.map(location.entry))
    } yield batches.foreach(gone)
  }

  private def classify(batch: Long): Future[Unit] = entries.read(batch).map { found =>
    synchronized {
      unread -= batch
      found match {
        case EntryFound.Logged(entry) if entry.index.entries.nonEmpty =>
        case _ => withoutLog += batch: Unit
      }
    }
  }

  /** Data files that an entry names. One of an earlier run is read for it; this run remembers its own. */
  private def filesOf(batch: Long): Future[Set[String]] = {
    val own = synchronized(
      ownFiles.get(batch).orElse(Option.when(batch > existing.lastOption.getOrElse(-1L))(Set.empty[String]))
    )
    own.map(Future.successful).getOrElse(entries.read(batch).map {
      case EntryFound.Logged(entry) => entry.files
      case EntryFound.Plain | EntryFound.Absent => Set.empty
    })
  }

  private def deleteAll(storage: StorageClient, paths: Vector[org.apache.hadoop.fs.Path]): Future[Unit] =
    if (paths.isEmpty) Future.unit
    else storage.delete(paths, timeoutMillis).flatMap(_.asFuture)

  private def gone(batch: Long): Unit = synchronized {
    known -= batch
    asked -= batch
    ownFiles.remove(batch)
    unread -= batch
    withoutLog -= batch: Unit
  }
}

private object Retention {

  /** Entries deleted in one round. */
  private val RoundSize = 100

  /** Entries looked at in one round. */
  private val ReadsInRound = 10
}
