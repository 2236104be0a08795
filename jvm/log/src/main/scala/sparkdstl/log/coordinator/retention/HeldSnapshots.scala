package sparkdstl.log.coordinator.retention

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.LogFileIndex
import sparkdstl.log.read.{EntryFound, EntryReader, SnapshotEntries}
import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Which snapshots are in commit entries. Few are: those that Spark makes part of a commit. Whoever loads a store, or decides
 * what of it is needed, must know them, and nobody is to read all entries for that. Thread-safe.
 *
 * @param existing
 *   batches that had an entry when the run began, in ascending order
 * @param newest
 *   the entry of the last of them
 * @param stands
 *   whether a batch still has an entry
 */
private[coordinator] final class HeldSnapshots(
    entries: EntryReader,
    existing: Vector[Long],
    newest: EntryFound,
    stands: Long => Boolean,
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  // Guarded by this: by batch, the stores; None until the entry has been read for them.
  private val held = mutable.TreeMap.empty[Long, Option[Set[String]]]
  private var found: Option[Future[Unit]] = None

  /** Batches below `batch` whose entries hold snapshots, in ascending order: what the entry of `batch` is to name. */
  def before(batch: Long): Future[Vector[Long]] = look().map(_ => standing.filter(_ < batch))

  /** Versions of a store whose snapshots are in entries, in ascending order. */
  def versions(storeDirectory: String): Future[Vector[Long]] =
    look().flatMap(_ => Future.sequence(standing.map(batch => storesOf(batch).map(batch -> _)))).map { stores =>
      stores.collect { case (batch, of) if of(storeDirectory) => batch + 1 }
    }

  /** This run has committed the batch with an entry of this index. */
  def committed(batch: Long, index: LogFileIndex): Unit = {
    val stores = SnapshotEntries.storesOf(index)
    synchronized {
      held.keys.filterNot(stands).toVector.foreach(held.remove(_): Unit)
      if (stores.nonEmpty) held.put(batch, Some(stores)): Unit
    }
  }

  /** An entry of another run that this one had not seen when it began. */
  def seen(entry: EntryFound): Unit = entry match {
    case EntryFound.Logged(logged) => note(SnapshotEntries.of(logged.batch, logged.index))
    case EntryFound.Plain | EntryFound.Absent =>
  }

  private def note(batches: Vector[Long]): Unit =
    synchronized(batches.foreach(held.getOrElseUpdate(_, None): Unit))

  private def standing: Vector[Long] = synchronized(held.keys.toVector).filter(stands)

  /** Completes when it is known what was there at the start; the newest entry tells, if it has a log. */
  private def look(): Future[Unit] = synchronized {
    found.filterNot(_.value.exists(_.isFailure)).getOrElse {
      val looking = newest match {
        case EntryFound.Logged(entry) => Future.successful(SnapshotEntries.of(entry.batch, entry.index))
        case EntryFound.Plain | EntryFound.Absent => SnapshotEntries.among(existing.dropRight(1))(entries.read)
      }
      val noted = looking.map(note)
      found = Some(noted)
      noted
    }
  }

  private def storesOf(batch: Long): Future[Set[String]] =
    synchronized(held.get(batch).flatten).map(Future.successful).getOrElse(entries.read(batch).map {
      case EntryFound.Logged(entry) =>
        val stores = SnapshotEntries.storesOf(entry.index)
        synchronized(held.updateWith(batch)(_.map(_ => Some(stores)))): Unit
        stores
      case EntryFound.Plain | EntryFound.Absent => Set.empty[String]
    })
}
