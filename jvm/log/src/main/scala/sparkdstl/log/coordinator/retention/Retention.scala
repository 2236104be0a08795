package sparkdstl.log.coordinator.retention

import scala.collection.{immutable, mutable}
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success, Try}

import sparkdstl.log.error.DamagedLogException
import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Deletes commit entries, and the data files they name, when nobody needs them any more.
 *
 * An entry of batch N is needed by a store while the lowest version that the store retains (its low-water mark) is not
 * above N + 1. The mark is that of the snapshot from which the oldest batch is rebuilt that Spark has not asked to delete; a
 * store that has none, and has told nothing, needs everything. An entry goes once Spark has asked for its deletion and no
 * store needs it. One without a log holds no state, but as long as a store needs the files that stand for it nobody else's late
 * write may take its name; where no store has anything in the log it goes when Spark asks. The newest entry goes at once
 * when somebody asks: that is a user going back.
 *
 * Work happens in the background, in rounds of bounded size, one at a time and as long as each gets somewhere. What fails
 * is tried again when something is committed, released or asked for. Thread-safe.
 *
 * @param stores
 *   directories of the stores in the newest entry with a log, before this run commits one
 * @param bases
 *   given a batch to which the state can be brought back, the lowest version that stores need for it and for all after it,
 *   as far as their snapshots are in entries
 * @param unneeded
 *   told of entries that are about to go and of the data files that they name; says which of these nothing else needs
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
    bases: Long => Seq[(String, Long)],
    unneeded: (Vector[Long], Set[String]) => Future[Set[String]],
    onFailure: Throwable => Unit
) {
  import Retention._
  private implicit val executor: ExecutionContext = runtime.executor

  private val goingBack = new GoingBack(location, checkpoint, timeoutMillis, runtime)

  // All guarded by this.
  private var known: immutable.TreeSet[Long] = immutable.TreeSet.from(existing)
  private val asked = mutable.TreeSet.empty[Long]
  private val ownFiles = mutable.HashMap.empty[Long, Set[String]]
  private val own = mutable.HashSet.empty[Long]
  private val withoutLog = mutable.HashSet.empty[Long]
  // Entries of before this run of which it is not known whether they have a log.
  private val unread = mutable.HashSet.from(existing)
  private val marks = new LowWaterMarks(stores)
  private var rounds: Future[Unit] = Future.unit
  private var closed = false

  /** This run has committed `batch`. */
  def committed(batch: Long, storeDirectories: Set[String], files: Set[String]): Unit = {
    synchronized {
      known += batch
      own += batch
      if (storeDirectories.isEmpty) withoutLog += batch
      else marks.setLive(storeDirectories)
      if (files.nonEmpty) ownFiles.put(batch, files): Unit
    }
    nextRound()
  }

  /** Nobody needs versions below these of these stores. Marks never go down. */
  def release(lowest: Seq[(String, Long)]): Unit = {
    synchronized(lowest.foreach { case (store, version) => marks.raise(store, version) })
    nextRound()
  }

  /** The lowest version of a store that is retained. */
  def lowest(storeDirectory: String): Long = synchronized(marks.of(storeDirectory))

  /** The versions of a store that entries with a log hold and that it has not released, in ascending order. */
  def versions(storeDirectory: String): Vector[Long] = synchronized {
    val lowest = marks.of(storeDirectory)
    known.iterator.filterNot(withoutLog).map(_ + 1).filter(_ >= lowest).toVector
  }

  /**
   * Somebody wants the entry of `batch` deleted. Completes when that has been done or noted: an entry that is still
   * needed goes later. Fails if it is to go at once and could not be deleted. The newest entry goes at once; one below
   * that this run has not seen is looked at first.
   */
  def askedToDelete(batch: Long): Future[Unit] =
    if (synchronized(known.lastOption.exists(batch < _))) later(batch)
    else checkpoint.list(location.commits, timeoutMillis).flatMap(_.asFuture).flatMap { objects =>
      // Other runs may have gone on from here, and deleted what is old, without this one having noticed yet.
      val there = LogLayout.batchesIn(objects)
      val above = there.filter(_ > batch)
      synchronized(above.foreach(noteUnseen))
      if (above.nonEmpty) later(batch) else newest(batch, there)
    }

  private def later(batch: Long): Future[Unit] = {
    synchronized {
      noteUnseen(batch)
      asked += batch
    }: Unit
    nextRound()
    Future.unit
  }

  private def newest(batch: Long, there: Vector[Long]): Future[Unit] = {
    val going =
      if (!there.contains(batch)) Future.successful(Vector(batch))
      else {
        val wanted: Set[Long] = synchronized {
          asked += batch
          asked.toSet
        }
        goingBack.entries(there, wanted)
      }
    going.flatMap(goingBack.delete(_)(gone))
  }

  /** Spark has seen an entry of `batch`, which appeared after this run had looked. */
  def noteUnseen(batch: Long): Unit = synchronized {
    if (!known(batch)) {
      known += batch
      unread += batch: Unit
    }
  }

  /** Whether an entry of this run names the data file. */
  def names(file: String): Boolean = synchronized(ownFiles.valuesIterator.exists(_(file)))

  /** Whether there is an entry of `batch`, as far as this run knows. */
  def stands(batch: Long): Boolean = synchronized(known(batch))

  /** Batches that have an entry, as far as this run knows, in ascending order. */
  def batches: Vector[Long] = synchronized(known.toVector)

  /** Deletes nothing any more. Completes when what is under way has ended. */
  def close(): Future[Unit] = synchronized {
    closed = true
    rounds
  }

  private def nextRound(): Unit = {
    raiseMarks()
    val begun = synchronized {
      val work = if (closed || !rounds.isCompleted) None else nextWork
      work.map { of =>
        val ended = Promise[Unit]()
        rounds = ended.future
        (of, ended)
      }
    }
    begun.foreach { case (work, ended) =>
      round(work).onComplete { outcome =>
        ended.success(())
        outcome match {
          case Success(gotSomewhere) => if (gotSomewhere) nextRound()
          case Failure(error) => onFailure(error)
        }
      }
    }
  }

  /** Whoever tells the bases may ask which entries there are: so they are asked for without the lock. */
  private def raiseMarks(): Unit = {
    val oldest = synchronized {
      if (asked.isEmpty || !rounds.isCompleted) None
      else known.iterator.filterNot(asked).nextOption()
    }
    oldest.map(bases).filter(_.nonEmpty).foreach { raised =>
      synchronized(raised.foreach { case (store, version) => marks.raise(store, version) })
    }
  }

  /** Lock held. */
  private def nextWork: Option[Work] = {
    val delete = deletable
    val work = if (delete.nonEmpty) Work(delete, Vector.empty) else Work(Vector.empty, unclear)
    Option.when(work.delete.nonEmpty || work.look.nonEmpty)(work)
  }

  /** What Spark has asked for and nobody needs, the oldest first. Lock held. */
  private def deletable: Vector[Long] = {
    val needed = marks.lowest - 1
    val noneNeeds = marks.isEmpty
    asked.iterator.filter(batch => batch < needed || noneNeeds && withoutLog(batch)).take(RoundSize).toVector
  }

  /** What might be deletable if it were known to have no log. Lock held. */
  private def unclear: Vector[Long] = asked.iterator.filter(unread).take(ReadsInRound).toVector

  /** Says whether anything has come of it. */
  private def round(work: Work): Future[Boolean] =
    for {
      looked <- all(work.look)(classify)
      files <- all(work.delete)(filesOf)
      going <- if (files.isEmpty) Future.successful(Set.empty[String])
      else unneeded(files.map(_._1), files.iterator.flatMap(_._2).toSet)
      _ <- deleteAll(log, going.toVector.sorted.map(location.file))
      _ <- deleteAll(checkpoint, files.map { case (batch, _) => location.entry(batch) })
    } yield {
      files.foreach { case (batch, _) => gone(batch) }
      looked.nonEmpty || files.nonEmpty
    }

  /** What was found of those of which something could be found; one that is in trouble holds up none of the others. */
  private def all[T](batches: Vector[Long])(question: Long => Future[T]): Future[Vector[(Long, T)]] =
    Future.sequence(batches.map(batch => question(batch).transform(answer => Try(batch -> answer)))).map { answers =>
      answers.iterator.flatMap(_._2.failed.toOption).nextOption().foreach(onFailure)
      answers.collect { case (batch, Success(answer)) => batch -> answer }
    }

  private def classify(batch: Long): Future[Unit] =
    entries.read(batch).map {
      case EntryFound.Logged(entry) =>
        val stores = entry.changedStores
        // The newest entry had none: the log has been off since. These are the stores that may need what is below.
        synchronized(if (stores.nonEmpty && marks.isEmpty) marks.setLive(stores))
        stores.nonEmpty
      case EntryFound.Plain | EntryFound.Absent => false
    }.recover {
      // Only what has a log can be damaged.
      case _: DamagedLogException => true
    }.map { hasLog =>
      synchronized {
        unread -= batch
        if (!hasLog) withoutLog += batch: Unit
      }
    }

  /**
   * Data files that an entry names. One of an earlier run is read for it; this run remembers its own. Those of a damaged
   * entry are left to a later run.
   */
  private def filesOf(batch: Long): Future[Set[String]] = {
    val remembered = synchronized(Option.when(own(batch))(ownFiles.getOrElse(batch, Set.empty[String])))
    remembered.map(Future.successful).getOrElse(entries.read(batch).map {
      case EntryFound.Logged(entry) => entry.files
      case EntryFound.Plain | EntryFound.Absent => Set.empty[String]
    }.recover { case _: DamagedLogException => Set.empty[String] })
  }

  private def deleteAll(storage: StorageClient, paths: Vector[org.apache.hadoop.fs.Path]): Future[Unit] =
    if (paths.isEmpty) Future.unit
    else storage.delete(paths, timeoutMillis).flatMap(_.asFuture)

  private def gone(batch: Long): Unit = synchronized {
    known -= batch
    asked -= batch
    own -= batch
    ownFiles.remove(batch)
    unread -= batch
    withoutLog -= batch: Unit
  }
}

private object Retention {

  /** Entries to be deleted, or looked at, in one round. */
  private final case class Work(delete: Vector[Long], look: Vector[Long])

  /** Entries deleted in one round. */
  private val RoundSize = 100

  /** Entries looked at in one round. */
  private val ReadsInRound = 10
}
