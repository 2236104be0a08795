package sparkdstl.log.coordinator.snapshots

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.{HeldSnapshot, LogFileIndex, SnapshotList}
import sparkdstl.log.read.{EntryFound, EntryReader, StandingSnapshots}
import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Which snapshots are in commit entries. Whoever loads a store, or decides what of it is needed, must know them, and nobody
 * is to read all entries for that: each entry tells of all, or of those since another one that did. Thread-safe.
 *
 * @param files
 *   learns which data files the entries name for their snapshots
 * @param newestAtStart
 *   the newest entry when the run began
 * @param standing
 *   the batches that have an entry, as far as the run knows, in ascending order
 */
private[coordinator] final class HeldSnapshots(
    entries: EntryReader,
    files: SharedFiles,
    newestAtStart: EntryFound,
    standing: () => Vector[Long],
    stands: Long => Boolean,
    runtime: ProtocolRuntime
) {
  import HeldSnapshots._
  private implicit val executor: ExecutionContext = runtime.executor

  // Guarded by this. By store directory, and the same by batch.
  private val byStore = mutable.HashMap.empty[String, Vector[HeldSnapshot]]
  private val byBatch = mutable.TreeMap.empty[Long, Vector[HeldSnapshot]]
  private var plainUpTo = Long.MaxValue
  private var newest = newestAtStart
  private var found: Option[Future[Unit]] = None
  // The entry of this run with a list of all.
  private var complete: Option[Long] = None

  /** Snapshots of a store that are in entries, in ascending order of versions, and up to where plain files may be. */
  def of(storeDirectory: String): Future[(Vector[HeldSnapshot], Long)] = known().map { _ =>
    val (snapshots, plain) = synchronized((byStore.getOrElse(storeDirectory, Vector.empty), plainUpTo))
    (snapshots.filter(snapshot => stands(snapshot.batch)).sortBy(_.key.version), plain)
  }

  /**
   * The lowest version that each store needs so that the state after `oldest`, and after any batch since, can be rebuilt: the
   * newest snapshot that the entry of `oldest`, or one before it, holds. One that a later entry holds would be gone if somebody
   * went back. The newest two stay, and what leads from one to the other: one may be damaged. Stores with fewer are left out.
   */
  def bases(oldest: Long): Vector[(String, Long)] = synchronized {
    // There are many more snapshots than entries that hold some.
    val standing = byBatch.keysIterator.filter(stands).toSet
    for {
      (store, all) <- byStore.iterator.filter(_._2.sizeIs > 1)
      there = all.filter(snapshot => standing(snapshot.batch)).sortBy(_.key.version)
      secondNewest <- there.dropRight(1).lastOption
      base <- there.filter(_.batch <= oldest).lastOption
    } yield store -> math.min(base.key.version, secondNewest.key.version)
  }.toVector

  /**
   * What the entry of `batch` is to tell.
   *
   * @param own
   *   the snapshots that it will hold itself
   * @param isLogged
   *   whether what its batch changes is in the log
   */
  def listFor(batch: Long, own: Vector[HeldSnapshot], isLogged: Boolean): Future[SnapshotList] = known().map { _ =>
    synchronized {
      val plain = if (batch == 0 && isLogged) 0 else if (isLogged) math.min(plainUpTo, batch) else batch + 1
      val continued = complete.filter(of => stands(of) && batch > of && batch - of < EntriesWithACompleteList)
      val before = continued.fold(byBatch.valuesIterator)(of => byBatch.valuesIteratorFrom(of + 1))
      SnapshotList(
        continued.getOrElse(batch),
        plain,
        before.flatten.filter(snapshot => stands(snapshot.batch) && snapshot.batch < batch).toVector ++ own
      )
    }
  }

  /** This run has committed the batch with an entry of this index. */
  def committed(batch: Long, index: LogFileIndex): Unit = synchronized {
    byBatch.keys.filterNot(stands).toVector.foreach(forget)
    index.snapshots.foreach { list =>
      list.held.filter(_.batch == batch).foreach(add)
      plainUpTo = list.plainUpTo
      if (list.complete == batch) complete = Some(batch)
    }
  }

  /** There is an entry of another run that this one had not seen when it began. */
  def seen(entry: EntryFound): Unit = synchronized {
    if (entry != EntryFound.Absent) {
      newest = entry
      found = None
      complete = None
    }
  }

  /** Entries above `left` are gone: what the next one continues is looked for anew. */
  def goBackTo(left: Long): Unit = synchronized {
    byBatch.keysIteratorFrom(left + 1).toVector.foreach { batch =>
      SharedFiles.ofEntry(batch).foreach(files.forget(_): Unit)
      forget(batch)
    }
    if (complete.exists(_ > left)) complete = None
  }

  /** Completes when it is known what was there at the start. */
  def known(): Future[Unit] = synchronized {
    found.filterNot(_.value.exists(_.isFailure)).getOrElse {
      val newestKnown = newest
      val read = (batch: Long) =>
        newestKnown match {
          case EntryFound.Logged(entry) if entry.batch == batch => Future.successful(newestKnown)
          case _ => entries.read(batch)
        }
      val looking = StandingSnapshots.among(standing())(read).map { there =>
        synchronized {
          byBatch.clear()
          byStore.clear()
          there.held.foreach(add)
          plainUpTo = there.plainUpTo
        }
      }
      found = Some(looking)
      looking
    }
  }

  /** Lock held. */
  private def add(snapshot: HeldSnapshot): Unit = {
    files.name(SharedFiles.Entry(snapshot.batch), snapshot.files)
    byBatch.updateWith(snapshot.batch)(before => Some(before.getOrElse(Vector.empty) :+ snapshot)): Unit
    byStore.updateWith(snapshot.key.storeDirectory)(before => Some(before.getOrElse(Vector.empty) :+ snapshot)): Unit
  }

  /** Lock held. */
  private def forget(batch: Long): Unit = byBatch.remove(batch).iterator.flatten.foreach { gone =>
    byStore.updateWith(gone.key.storeDirectory)(_.map(_.filterNot(_ eq gone)).filter(_.nonEmpty)): Unit
  }
}

private object HeldSnapshots {

  /** One entry in so many tells of all snapshots, and those after it of what came since. */
  private val EntriesWithACompleteList = 64L
}
