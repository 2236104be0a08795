package sparkdstl.log.coordinator.snapshots

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.coordinator.attempts.{AttemptLedger, InlineBudget}
import sparkdstl.log.format._
import sparkdstl.log.read.{EntryFound, EntryReader, LoadedEntry}
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{FromDriver, SnapshotPlace, ToDriver}

/**
 * The snapshots of a run: those that commit entries hold, and those that executors offer for the next one. A snapshot
 * counts only when an entry holds it. Thread-safe.
 *
 * @param logsAll
 *   whether all snapshots of the run go to the log: else there may be plain files of every version
 * @param listed
 *   asks storage which batches have an entry
 * @param standing
 *   the batches that have an entry, as far as the run knows, in ascending order
 * @param newestCommitted
 *   the last of them
 * @param letGo
 *   told of data files that nobody needs any more
 */
private[coordinator] final class RunSnapshots(
    entries: EntryReader,
    writer: Writer,
    newestAtStart: EntryFound,
    logsAll: Boolean,
    listed: () => Future[Set[Long]],
    standing: () => Vector[Long],
    stands: Long => Boolean,
    newestCommitted: () => Long,
    ledger: AttemptLedger,
    budget: InlineBudget,
    letGo: Set[String] => Unit,
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  private val files = new SharedFiles(writer.epoch)
  private val held = new HeldSnapshots(entries, files, newestAtStart, standing, stands, runtime)
  private val offers = new SnapshotOffers(budget, files, letGo)

  // Guarded by this: the entry that was looked at last for who committed it.
  private var lookedAt: Option[LoadedEntry] = None

  /** Where the snapshots of a store are, and up to which version there may be plain files. */
  def of(storeDirectory: String): Future[(Vector[SnapshotPlace], Long)] = held.of(storeDirectory).map {
    case (snapshots, plainUpTo) =>
      (snapshots.map(SnapshotPlace.of), plainUpTo)
  }

  /** See [[HeldSnapshots.bases]]. */
  def bases(oldest: Long): Vector[(String, Long)] = held.bases(oldest)

  /** An executor offers a snapshot. It is taken if its version was committed by the attempt that it came from. */
  def offer(message: ToDriver.OfferSnapshot): Future[FromDriver] = {
    val key = message.key
    val lineage = offers.currentLineage
    if (key.batch > newestCommitted()) Future.successful(FromDriver.NotYet)
    else for {
      (there, _) <- held.of(key.storeDirectory)
      inEntry = SnapshotOffers.answerIfHeld(there.map(_.key), key)
      isCommitted <- if (inEntry.nonEmpty) Future.successful(true) else wasCommittedBy(key, message.attempt)
    } yield
      if (inEntry.nonEmpty) inEntry.get
      else if (!isCommitted) refused(s"version ${key.version} was not committed by task attempt ${message.attempt}")
      else offers.take(new SnapshotOffer(message), lineage)
  }

  /**
   * What the entry of `batch` is to hold of snapshots beside the batch's own segments, and what it is to tell of them.
   *
   * @param segments
   *   of the batch; snapshots that are part of the commit are among them
   */
  def forEntry(batch: Long, segments: Vector[CommittedSegment]): Future[(Vector[CommittedSegment], SnapshotList)] = {
    val taken = offers.forEntry(batch)
    val ofBatch = segments.filter(_.key.kind == SegmentKind.Snapshot).map { zip =>
      HeldSnapshot(zip.key, batch, filesOf(segments.filter(isPartOf(_, zip.key))))
    }
    val own = ofBatch ++ taken.map(offer => HeldSnapshot(offer.key, batch, offer.files.toVector.sorted))
    // From here on the entry may be there. If it is never written the run ends, and lets go of nothing any more.
    files.name(SharedFiles.Written(batch), ofBatch.flatMap(_.files))
    held.listFor(batch, own, logsAll && segments.exists(_.key.kind == SegmentKind.Changelog))
      .map(list => (taken.flatMap(_.segments), list))
  }

  /** This run has committed the batch with an entry of this index. */
  def committed(batch: Long, index: LogFileIndex): Unit = {
    held.committed(batch, index)
    offers.held(index.snapshots.iterator.flatMap(_.held).filter(_.batch == batch).map(_.key).toSet)
  }

  /** There is an entry of another run that this one had not seen when it began. */
  def seen(entry: EntryFound): Unit = held.seen(entry)

  /** Entries above `left` are gone. */
  def goBackTo(left: Long): Unit = {
    held.goBackTo(left)
    offers.goBackTo(left + 1)
    synchronized { lookedAt = None }
  }

  /**
   * Entries are about to be deleted, with the files that they name.
   *
   * @return
   *   those of the files that nothing else needs
   */
  def letGoWith(batches: Vector[Long], named: Set[String]): Future[Set[String]] =
    for {
      _ <- held.known()
      others = files.othersNaming(named, batches.toSet)
      there <- if (others.isEmpty) Future.successful(Set.empty[Long]) else listed()
    } yield {
      others.filterNot(there).foreach(batch => files.forget(SharedFiles.Entry(batch)): Unit)
      files.letGo(batches.flatMap(SharedFiles.ofEntry), named)
    }

  /** Whether a snapshot of this run consists of the data file. */
  def isNamed(file: String): Boolean = files.isNamedByThisRun(file)

  /** How many snapshots wait for a commit entry. */
  def waiting: Int = offers.size

  /** The run has ended. */
  def end(): Unit = offers.end()

  private def isPartOf(segment: CommittedSegment, zip: SegmentKey): Boolean =
    segment.key == zip ||
      segment.key.kind == SegmentKind.SnapshotFile && segment.key.storeDirectory == zip.storeDirectory

  private def filesOf(segments: Vector[CommittedSegment]): Vector[String] =
    segments.iterator.flatMap(_.parts).flatMap(_.toOption).flatMap(_.file).toVector.distinct.sorted

  private def wasCommittedBy(key: SegmentKey, attempt: Long): Future[Boolean] =
    ledger.committedAttempt(key.batch, key.storeDirectory) match {
      case Some(known) => Future.successful(known.contains(attempt))
      case None => entry(key.batch).map {
          // Another run may have had an attempt of that number.
          _.filter(_.index.writer.run == writer.run)
            .flatMap(_.segment(key.copy(kind = SegmentKind.Changelog))).exists(_.attempt == attempt)
        }
    }

  private def entry(batch: Long): Future[Option[LoadedEntry]] =
    synchronized(lookedAt).filter(_.batch == batch) match {
      case known @ Some(_) => Future.successful(known)
      case None => entries.read(batch).map {
          case EntryFound.Logged(entry) =>
            synchronized { lookedAt = Some(entry) }
            Some(entry)
          case EntryFound.Plain | EntryFound.Absent => None
        }
    }

  private def refused(reason: String): FromDriver = FromDriver.SnapshotRefused(reason, Vector.empty)
}
