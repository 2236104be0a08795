// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.attempts

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import sparkdstl.log.format.{CommittedSegment, SegmentKey, SegmentKind, SegmentPart}
import sparkdstl.log.transport.{FromDriver, SealedSegment, ToDriver}

/**
 * The seals of one run's task attempts for uncommitted batches, and the states of their segments.
 *
 * A batch takes seals until [[close]], which chooses attempts for its stores; [[whenSettled]] completes when all chosen
 * segments are durable or lost. Seals and withdrawals are idempotent. The cost of a report does not depend on the number of
 * stores. `budget` bounds inline bytes. Thread-safe.
 */
private[coordinator] final class AttemptLedger(budget: InlineBudget) {
  import AttemptLedger._

  // All guarded by this.
  private val batches = mutable.HashMap.empty[Long, Batch]
  private val tickets = mutable.HashMap.empty[String, mutable.HashMap[Long, HeldSegment]] // by executor
  private var closedBatch = -1L
  private var chosen: Option[Chosen] = None
  // The attempts of a commit that has not succeeded (yet), and those of the last commit.
  private var undecided: Option[(Long, Set[Long])] = None
  private var committedBy = Map.empty[String, Long]
  private var committedAttempts = Set.empty[Long]
  private var committedBatch = -1L

  /** Takes an attempt's seal, and its carried snapshots up to `carriedLimit` inline bytes in a batch. */
  def seal(executor: String, seal: ToDriver.Seal, carriedLimit: Long): FromDriver = synchronized {
    val known = batches.get(seal.batch).flatMap(_.attempts.get(seal.attempt))
    // If a segment was written twice, the last one counts.
    val latest = seal.segments.reverseIterator.distinctBy(_.key).toVector.reverse
    val news = latest.filterNot(segment => known.exists(_.segments.contains(segment.key)))
    if (known.exists(_.withdrawn)) Withdrawn
    else if (news.isEmpty && known.nonEmpty) accepted(seal, known.get)
    else if (seal.batch <= closedBatch) late(s"batch ${seal.batch} is closed; batch $closedBatch was the last")
    else {
      val stale = news.filter(isStale(seal.batch, _)).map(_.key.storeDirectory).distinct
      if (stale.nonEmpty)
        FromDriver.Refused("its local state is not what was committed. Spark runs the task again on what was", stale)
      else if (!budget.tryAcquire(news.iterator.map(segment => HeldSegment.inlineBytes(segment.parts)).sum))
        FromDriver.OverBudget
      else {
        take(executor, seal, news)
        accepted(seal, takeCarried(seal, carriedLimit))
      }
    }
  }

  /**
   * Withdraws the seals of an attempt for a batch, later ones included. Returns whether the seals may be part of a commit: the
   * batch is closed and the attempt was chosen.
   */
  def withdraw(attempt: Long, batch: Long): Boolean = synchronized {
    val mayBeCommitted = undecided.exists { case (of, attempts) => of == batch && attempts(attempt) } ||
      batch < committedBatch || (batch == committedBatch && committedAttempts(attempt))
    if (!mayBeCommitted && batch > closedBatch) {
      val of = batches.getOrElseUpdate(batch, new Batch).attempts.getOrElseUpdate(attempt, new Attempt)
      of.withdrawn = true
      of.segments.valuesIterator.foreach { segment =>
        budget.release(segment.inlineBytes)
        segment.withdraw()
      }
      budget.release(HeldSegment.inlineBytes(of.dropCarried().flatMap(_.parts)))
    }
    mayBeCommitted
  }

  /** Records the end of an upload, and returns whether the ticket is known: its batch is not committed yet. Idempotent. */
  def uploaded(executor: String, ticket: Long, result: Either[String, SegmentPart]): Boolean = {
    val (isKnown, settled) = synchronized {
      val segment = tickets.get(executor).flatMap(_.get(ticket))
      segment.foreach(of => result.fold(of.lose, of.place(ticket, _)))
      (segment.nonEmpty, nowSettled(segment))
    }
    settled.foreach(_.trySuccess(()))
    isKnown
  }

  /** Marks all segments that the executor has not uploaded as lost. A late report can still make them durable. */
  def executorLost(executor: String, reason: String): Unit = {
    val settled = synchronized {
      val segments = tickets.get(executor).fold(Vector.empty[HeldSegment])(_.valuesIterator.toVector.distinct)
      segments.foreach(_.lose(s"executor $executor: $reason"))
      nowSettled(segments)
    }
    settled.foreach(_.trySuccess(()))
  }

  def hasSeals(batch: Long): Boolean = synchronized(sealedSegments(batch).nonEmpty)

  /** The directories of the stores that attempts for the batch have sealed. */
  def sealedStores(batch: Long): Set[String] = synchronized(sealedSegments(batch).map(_.store).toSet)

  private def sealedSegments(batch: Long): Iterator[HeldSegment] =
    batches.get(batch).iterator.flatMap(_.attempts.valuesIterator).filterNot(_.withdrawn)
      .flatMap(_.segments.valuesIterator)

  /**
   * Closes `batch` to further seals, and chooses attempts for its stores: by the checkpoint ids in the commit entry, if it has
   * any. `reported` are attempts whose results Spark has accepted, in order.
   */
  def close(batch: Long, ids: Set[String], reported: Seq[Long]): Closing = synchronized {
    closedBatch = math.max(closedBatch, batch)
    val byStore = mutable.LinkedHashMap.empty[String, Vector[Candidate]]
    for {
      of <- batches.get(batch).iterator
      (id, attempt) <- of.attempts.iterator if !attempt.withdrawn
      (store, segments) <- attempt.segments.valuesIterator.toVector.groupBy(_.store)
    } byStore.updateWith(store)(before => Some(before.getOrElse(Vector.empty) :+ Candidate(id, segments)))
    val WinnerSelection.Result(choices, losers) = WinnerSelection.of(byStore.toVector, ids, reported)
    chosen = Some(new Chosen(batch, choices))
    undecided = Some(batch -> choices.iterator.flatMap(_.candidates).map(_.attempt).toSet)
    val sealedIds = choices.iterator.flatMap(_.candidates).flatMap(_.segments).flatMap(_.key.checkpointId).toSet
    Closing(losers, ids -- sealedIds)
  }

  /** Executors that hold chosen segments which are not uploaded. */
  def holders: Set[String] = synchronized(chosen.iterator.flatMap(_.unsettled).flatMap(_.holders).toSet)

  /** Completes when every store of the closed batch is settled. */
  def whenSettled: Future[Unit] = {
    val (promise, isSettled) = synchronized((chosen.get.settled, chosen.get.unsettled.isEmpty))
    if (isSettled) promise.trySuccess(()): Unit
    promise.future
  }

  def unsettled: Vector[String] =
    synchronized(chosen.iterator.flatMap(_.unsettled).map(_.store).toVector.distinct)

  /** The segments for the commit entry, or the lost stores with reasons. Called after [[whenSettled]] has completed. */
  def result: Either[Vector[(String, String)], Vector[CommittedSegment]] = synchronized {
    val choices = chosen.get.choices
    val lost = choices.filter(_.durable.isEmpty).map(choice => choice.store -> choice.whyLost)
    if (lost.nonEmpty) Left(lost.distinctBy(_._1))
    else {
      val durable = choices.flatMap(choice => choice.durable.map(choice.store -> _))
      chosen.get.winners = durable
      Right(durable.flatMap { case (_, of) =>
        of.segments.map(segment => CommittedSegment(segment.key, of.attempt, segment.placed))
      } ++ carriedBy(durable))
    }
  }

  /**
   * Forgets the batch, whose [[result]] was committed, and all earlier ones. Returns the data files of attempts that are not part of
   * it.
   */
  def committed(batch: Long): Set[String] = synchronized {
    val durable = chosen.fold(Vector.empty[(String, Candidate)])(_.winners)
    // Whose local state is the committed one: where siblings were sealed one by one, the changelog's.
    committedBy = durable.iterator.filter(_._2.segments.exists(_.key.kind == SegmentKind.Changelog))
      .map { case (store, of) => store -> of.attempt }.toMap
    committedAttempts = durable.iterator.map(_._2.attempt).toSet
    committedBatch = batch
    val carried = carriedBy(durable)
    val used = durable.iterator.flatMap(_._2.segments).flatMap(_.files) ++
      carried.iterator.flatMap(_.parts).flatMap(_.toOption).flatMap(_.file)
    forget(batch) -- used -- batches.valuesIterator.flatMap(_.files)
  }

  /** Forgets the batches up to `batch`, and returns their data files. */
  def forget(batch: Long): Set[String] = synchronized {
    closedBatch = math.max(closedBatch, batch)
    chosen = None
    undecided = None
    drop(batches.keysIterator.filter(_ <= batch).toVector)
  }

  /** Ends the run: releases all bytes, and refuses seals. Withdrawals are still answered. */
  def end(): Unit = synchronized {
    chosen = None
    closedBatch = Long.MaxValue
    drop(batches.keysIterator.toVector): Unit
  }

  /** Lock held. */
  private def take(executor: String, seal: ToDriver.Seal, segments: Vector[SealedSegment]): Unit = {
    val attempt = batches.getOrElseUpdate(seal.batch, new Batch).attempts.getOrElseUpdate(seal.attempt, new Attempt)
    segments.foreach { of =>
      val segment = new HeldSegment(of.key, executor, of.parts)
      attempt.segments.put(segment.key, segment)
      if (segment.tickets.nonEmpty) {
        val ofExecutor = tickets.getOrElseUpdate(executor, mutable.HashMap.empty)
        segment.tickets.foreach(ofExecutor.put(_, segment))
      }
    }
  }

  /**
   * Whether the segment was built on a local state that may differ from the committed one: another attempt was committed, or
   * the batch of the local state was not.
   */
  private def isStale(batch: Long, segment: SealedSegment): Boolean =
    segment.base.exists { base =>
      batch != committedBatch + 1 || !committedBy.get(segment.key.storeDirectory).contains(base)
    }

  /**
   * Takes as many carried snapshots of the attempt's stores as fit. A part of the limit is reserved for snapshots that have
   * waited longer: tasks seal in a similar order in each batch, so snapshots of the last task would never fit. Lock held.
   */
  private def takeCarried(seal: ToDriver.Seal, limit: Long): Attempt = {
    val batch = batches.getOrElseUpdate(seal.batch, new Batch)
    val attempt = batch.attempts.getOrElseUpdate(seal.attempt, new Attempt)
    def isLocal(store: String) = seal.segments.exists(of => of.base.nonEmpty && of.key.storeDirectory == store)
    // Files of earlier snapshots keep their versions, so the zip has the highest.
    def versionOf(segments: Vector[SealedSegment]) = segments.iterator.map(_.key.version).max
    seal.carried.groupBy(_.key.storeDirectory).toVector.sortBy(of => versionOf(of._2)).foreach {
      case (store, segments) =>
        val inlineBytes = HeldSegment.inlineBytes(segments.flatMap(_.parts))
        val waited = math.max(0L, seal.batch - versionOf(segments))
        val fits = batch.carriedBytes == 0 || batch.carriedBytes + inlineBytes <= limit - limit / (waited + 2)
        // Only changes that are based on the local state prove that its earlier versions were committed.
        if (isLocal(store) && !attempt.carried.contains(store) && fits && budget.tryAcquire(inlineBytes)) {
          batch.carriedBytes += inlineBytes
          attempt.carried += store -> segments
        }
    }
    attempt
  }

  private def accepted(seal: ToDriver.Seal, attempt: Attempt): FromDriver = FromDriver.Accepted(
    None,
    seal.carried.map(_.key.storeDirectory).distinct.filterNot(attempt.carried.contains).map(_ -> Vector.empty)
  )

  /** The carried snapshots of the winners, without files that are part of the commit otherwise. Lock held. */
  private def carriedBy(winners: Vector[(String, Candidate)]): Vector[CommittedSegment] = {
    val carriers = chosen.flatMap(of => batches.get(of.batch)).iterator.flatMap(_.attempts)
      .filter(_._2.carried.nonEmpty).toMap
    if (carriers.isEmpty) Vector.empty
    else {
      val committed = winners.iterator.flatMap(_._2.segments).map(_.key)
      val files = committed.filter(_.kind == SegmentKind.SnapshotFile).toSet
      for {
        (store, winner) <- winners if winner.segments.exists(_.key.kind == SegmentKind.Changelog)
        attempt <- carriers.get(winner.attempt).toVector
        segment <- attempt.carried.getOrElse(store, Vector.empty) if !files(segment.key)
      } yield CommittedSegment(segment.key, winner.attempt, HeldSegment.placed(segment.parts, Map.empty))
    }
  }

  /** The promise of the closed batch, if its last unsettled store has just been settled. Lock held. */
  private def nowSettled(changed: Iterable[HeldSegment]): Option[Promise[Unit]] = chosen.flatMap { of =>
    val wasSettled = of.unsettled.isEmpty
    changed.iterator.flatMap(_.choice).filter(_.isSettled).foreach(of.unsettled -= _)
    Option.when(!wasSettled && of.unsettled.isEmpty)(of.settled)
  }

  /** Lock held. */
  private def drop(gone: Vector[Long]): Set[String] = {
    val dropped = gone.flatMap(batches.remove)
    dropped.iterator.flatMap(_.segments).foreach { segment =>
      budget.release(segment.inlineBytes)
      tickets.get(segment.executor).foreach { ofExecutor =>
        ofExecutor --= segment.tickets
        if (ofExecutor.isEmpty) tickets.remove(segment.executor)
      }
    }
    budget.release(HeldSegment.inlineBytes(dropped.flatMap(_.carried).flatMap(_.parts)))
    dropped.iterator.flatMap(_.files).toSet
  }
}

private[coordinator] object AttemptLedger {

  val Withdrawn: FromDriver = late("it was withdrawn")

  private def late(reason: String): FromDriver =
    FromDriver.Refused(s"$reason. It is a late attempt, and its changes are not needed", Vector.empty)

  /** The executor, attempt and store of losing seals, and the checkpoint ids in the entry without a sealed segment. */
  final case class Closing(losers: Vector[(String, Long, String)], missingIds: Set[String])

  private final class Batch {
    val attempts = mutable.LinkedHashMap.empty[Long, Attempt]
    // Inline bytes of carried snapshots, of withdrawn attempts too.
    var carriedBytes = 0L

    def segments: Iterator[HeldSegment] = attempts.valuesIterator.flatMap(_.segments.valuesIterator)
    def carried: Iterator[SealedSegment] = attempts.valuesIterator.flatMap(_.carried.valuesIterator).flatten

    def files: Iterator[String] =
      segments.flatMap(_.files) ++ carried.flatMap(_.files) ++ attempts.valuesIterator.flatMap(_.withdrawnFiles)
  }

  private final class Attempt {
    val segments = mutable.LinkedHashMap.empty[SegmentKey, HeldSegment]
    // Finished snapshots of earlier versions, by store directory.
    var carried = Map.empty[String, Vector[SealedSegment]]
    var withdrawn = false

    // Files of carried snapshots: a withdrawn attempt's executor has no answer whether they were taken.
    var withdrawnFiles = Vector.empty[String]

    def dropCarried(): Vector[SealedSegment] = {
      val dropped = carried.valuesIterator.flatten.toVector
      withdrawnFiles ++= dropped.iterator.flatMap(_.files)
      carried = Map.empty
      dropped
    }
  }

  private final class Chosen(val batch: Long, val choices: Vector[StoreChoice]) {
    val unsettled: mutable.LinkedHashSet[StoreChoice] = mutable.LinkedHashSet.from(choices.filterNot(_.isSettled))
    val settled: Promise[Unit] = Promise()

    // By store, the attempt whose changes are in the entry: a later report changes nothing.
    var winners = Vector.empty[(String, Candidate)]
    choices.foreach(choice => choice.candidates.iterator.flatMap(_.segments).foreach(_.choice = Some(choice)))
  }
}
