package sparkdstl.log.coordinator

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import sparkdstl.log.format.{CommittedSegment, SegmentKey, SegmentPart}
import sparkdstl.log.transport.{FromDriver, SealedPart, SealedSegment, ToDriver}

/**
 * What the task attempts of one run have sealed for batches that are not committed yet, and what has become of it.
 *
 * A batch takes seals until [[close]]; then one attempt is chosen for each store, and [[whenSettled]] tells when all
 * that was chosen is durable or lost. Seals and withdrawals may be said any number of times. Thread-safe.
 *
 * @param budget
 *   for the inline bytes held here
 */
private[coordinator] final class AttemptLedger(budget: InlineBudget) {
  import AttemptLedger._

  // All guarded by this.
  private val batches = mutable.HashMap.empty[Long, Batch]
  private val tickets = mutable.HashMap.empty[(String, Long), SealedBy]
  private var closedBatch = -1L
  private var chosen: Option[Chosen] = None
  private var committedBy = Map.empty[String, Long]
  private var committedBatch = -1L

  /** Takes what an attempt has sealed. */
  def seal(executor: String, seal: ToDriver.Seal): FromDriver = synchronized {
    val known = batches.get(seal.batch).flatMap(_.attempts.get(seal.attempt))
    val news = seal.segments.filterNot(segment => known.exists(_.segments.contains(segment.key)))
    val inlineBytes = news.iterator.flatMap(_.parts).collect { case SealedPart.Inline(bytes) => bytes.length.toLong }.sum
    if (known.exists(_.withdrawn)) refused("it was withdrawn")
    else if (news.isEmpty && known.nonEmpty) FromDriver.Accepted(None)
    else if (seal.batch <= closedBatch) refused(s"batch ${seal.batch} is closed; batch $closedBatch was the last")
    else {
      val stale = news.filter(isStale(seal.batch, _)).map(_.key.storeDirectory).distinct
      if (stale.nonEmpty)
        FromDriver.Refused("its local state is not what was committed, and is loaded again", stale)
      else if (!budget.tryAcquire(inlineBytes)) FromDriver.OverBudget
      else {
        take(executor, seal, news, inlineBytes)
        FromDriver.Accepted(None)
      }
    }
  }

  /**
   * Takes back what an attempt has sealed for a batch, also what is still to come of it.
   *
   * @return
   *   whether it may have become part of a commit all the same: the batch is closed and this attempt was chosen
   */
  def withdraw(attempt: Long, batch: Long): Boolean = {
    val mayBeCommitted = synchronized {
      val isChosen = chosen.exists(choice => choice.batch == batch && choice.attempts(attempt))
      if (!isChosen && batch > closedBatch) {
        val of = batches.getOrElseUpdate(batch, new Batch).attempts.getOrElseUpdate(attempt, new Attempt("nobody"))
        of.withdrawn = true
        of.segments.valuesIterator.foreach(_.become(SealState.Withdrawn))
      }
      isChosen || (batch <= committedBatch && wasCommitted(attempt, batch))
    }
    completeIfSettled()
    mayBeCommitted
  }

  /**
   * Takes word of how an upload ended; hearing it twice changes nothing. None if nobody knows the ticket: its batch is
   * forgotten.
   */
  def uploaded(executor: String, ticket: Long, result: Either[String, SegmentPart]): Option[Unit] = {
    val known = synchronized {
      tickets.get((executor, ticket)).map { by =>
        result match {
          case Right(part) => by.place(ticket, part)
          case Left(reason) => by.lose(reason)
        }
      }
    }
    completeIfSettled()
    known
  }

  /** What the executor had not yet uploaded is lost, unless word of it still comes. */
  def executorLost(executor: String, reason: String): Unit = {
    synchronized {
      tickets.foreach { case ((of, _), by) => if (of == executor) by.lose(s"executor $executor: $reason") }
    }
    completeIfSettled()
  }

  /** Whether anything was sealed for `batch`. */
  def hasSeals(batch: Long): Boolean =
    synchronized(batches.get(batch).exists(_.attempts.valuesIterator.exists(a => !a.withdrawn && a.segments.nonEmpty)))

  /**
   * Takes no more seals for `batch`, and chooses an attempt for each of its stores.
   *
   * @param ids
   *   the state store checkpoint ids that the commit entry names; empty if there are none in this checkpoint
   * @param reported
   *   attempts whose results Spark has taken, in the order in which it did
   * @return
   *   attempts that sealed a store and were not chosen for it, by executor and attempt, with the stores' directories;
   *   and the checkpoint ids for which nothing was sealed
   */
  def close(batch: Long, ids: Set[String], reported: Seq[Long]): Closing = synchronized {
    closedBatch = math.max(closedBatch, batch)
    val attempts = batches.get(batch).fold(Vector.empty[(Long, Attempt)])(_.attempts.toVector)
      .filterNot(_._2.withdrawn)
    val order = reported.zipWithIndex.toMap
    val byStore = mutable.LinkedHashMap.empty[String, Vector[(Long, Vector[SealedBy])]]
    attempts.foreach { case (id, attempt) =>
      attempt.segments.valuesIterator.toVector.groupBy(_.key.storeDirectory).foreach { case (store, segments) =>
        byStore.updateWith(store)(before => Some(before.getOrElse(Vector.empty) :+ (id -> segments)))
      }
    }
    val choices = byStore.toVector.sortBy(_._1).map { case (store, candidates) =>
      Choice(store, candidatesOf(candidates, ids, order))
    }
    chosen = Some(new Chosen(batch, choices.filter(_.candidates.nonEmpty)))
    val losers = for {
      choice <- choices if choice.candidates.size == 1
      (attempt, segments) <- byStore(choice.store) if choice.candidates.head._1 != attempt
    } yield (segments.head.executor, attempt, choice.store)
    val sealedIds = choices.iterator.flatMap(_.candidates).flatMap(_._2).flatMap(_.key.checkpointId).toSet
    Closing(losers, ids -- sealedIds)
  }

  /** Executors that still have to upload something of what was chosen. */
  def holders: Set[String] = synchronized {
    chosen.iterator.flatMap(_.choices).filterNot(_.isSettled).flatMap(_.candidates).flatMap(_._2)
      .filter(_.state == SealState.Sealed).map(_.executor).toSet
  }

  /** Completes as soon as every store of the closed batch is settled. */
  def whenSettled: Future[Unit] = {
    val settled = synchronized(chosen.get.settled.future)
    completeIfSettled()
    settled
  }

  /** Stores of the closed batch that are not settled. */
  def unsettled: Vector[String] = synchronized(chosen.iterator.flatMap(_.choices).filterNot(_.isSettled).map(_.store).toVector)

  /** What the commit entry is to carry, or which stores are lost, and why. To be called once all is settled. */
  def result: Either[Vector[(String, String)], Vector[CommittedSegment]] = synchronized {
    val choices = chosen.get.choices
    val lost = choices.filter(_.durable.isEmpty).map(choice => choice.store -> choice.whyLost)
    if (lost.nonEmpty) Left(lost)
    else Right(choices.flatMap { choice =>
      val (attempt, segments) = choice.durable.get
      segments.sortBy(_.key.fileName).map(segment => CommittedSegment(segment.key, attempt, segment.placed))
    })
  }

  /**
   * The closed batch is committed. Forgets it and all before it.
   *
   * @return
   *   data files that attempts named which are not part of it
   */
  def committed(batch: Long): Set[String] = synchronized {
    val choices = chosen.filter(_.batch == batch).fold(Vector.empty[Choice])(_.choices)
    committedBy = choices.iterator.flatMap(choice => choice.durable.map(choice.store -> _._1)).toMap
    committedBatch = batch
    val used = choices.iterator.flatMap(_.durable).flatMap(_._2).flatMap(_.files).toSet
    forget(batch) -- used
  }

  /** Forgets the batches up to `batch`, and tells which data files they named. */
  def forget(batch: Long): Set[String] = synchronized {
    closedBatch = math.max(closedBatch, batch)
    chosen = None
    val gone = batches.keysIterator.filter(_ <= batch).toVector.flatMap(batches.remove)
    val segments = gone.flatMap(_.attempts.valuesIterator).flatMap(_.segments.valuesIterator)
    segments.foreach { segment =>
      budget.release(segment.inlineBytes)
      segment.tickets.foreach(ticket => tickets.remove((segment.executor, ticket)))
    }
    segments.flatMap(_.files).toSet
  }

  /** The batch of which the winners are known, and for how many stores; -1 and 0 before the first. */
  def lastCommitted: (Long, Int) = synchronized((committedBatch, committedBy.size))

  private def take(executor: String, seal: ToDriver.Seal, segments: Vector[SealedSegment], inlineBytes: Long): Unit = {
    val attempt = batches.getOrElseUpdate(seal.batch, new Batch).attempts
      .getOrElseUpdate(seal.attempt, new Attempt(executor))
    val taken = segments.map(segment => new SealedBy(segment.key, executor, segment.parts))
    assert(taken.iterator.map(_.inlineBytes).sum == inlineBytes)
    taken.foreach { segment =>
      attempt.segments.put(segment.key, segment)
      segment.tickets.foreach(ticket => tickets.put((executor, ticket), segment))
    }
  }

  /** Built on a local state that another attempt's commit has replaced. Only the newest winners are known. */
  private def isStale(batch: Long, segment: SealedSegment): Boolean =
    segment.base.exists { base =>
      batch == committedBatch + 1 && !committedBy.get(segment.key.storeDirectory).contains(base)
    }

  private def wasCommitted(attempt: Long, batch: Long): Boolean =
    batch < committedBatch || committedBy.valuesIterator.contains(attempt)

  private def candidatesOf(
      sealedBy: Vector[(Long, Vector[SealedBy])],
      ids: Set[String],
      order: Map[Long, Int]
  ): Vector[(Long, Vector[SealedBy])] =
    if (ids.nonEmpty)
      sealedBy.map { case (attempt, segments) => attempt -> segments.filter(_.key.checkpointId.forall(ids)) }
        .filter(_._2.nonEmpty).sortBy(_._1).takeRight(1)
    else {
      val taken = sealedBy.filter { case (attempt, _) => order.contains(attempt) }
      if (taken.nonEmpty) Vector(taken.maxBy { case (attempt, _) => order(attempt) })
      else sealedBy.sortBy(_._1)
    }

  private def completeIfSettled(): Unit = {
    val settled = synchronized(chosen.filter(_.isSettled).map(_.settled))
    settled.foreach(_.trySuccess(()))
  }

  private def refused(reason: String): FromDriver = FromDriver.Refused(reason, Vector.empty)
}

private[coordinator] object AttemptLedger {

  /**
   * @param losers
   *   executor, attempt and store directory of what was sealed and not chosen
   * @param missingIds
   *   checkpoint ids named by the entry for which nothing was sealed
   */
  final case class Closing(losers: Vector[(String, Long, String)], missingIds: Set[String])

  private final class Batch {
    val attempts = mutable.LinkedHashMap.empty[Long, Attempt]
  }

  private final class Attempt(val executor: String) {
    val segments = mutable.LinkedHashMap.empty[SegmentKey, SealedBy]
    var withdrawn = false
  }

  /** One segment that one attempt has sealed. Guarded by the ledger. */
  private final class SealedBy(val key: SegmentKey, val executor: String, parts: Vector[SealedPart]) {
    private val places = mutable.HashMap.empty[Long, SegmentPart]
    private var why = "it is not durable"
    private var current: SealState = SealState.Sealed
    if (missing.isEmpty) become(SealState.Durable)

    def state: SealState = current

    def tickets: Vector[Long] = parts.collect { case SealedPart.Pending(ticket, _) => ticket }

    def inlineBytes: Long = parts.iterator.collect { case SealedPart.Inline(bytes) => bytes.length.toLong }.sum

    def files: Vector[String] =
      parts.collect { case SealedPart.Stored(part) => part.file }.flatten ++ places.valuesIterator.flatMap(_.file)

    def become(state: SealState): Unit = current = SealState.next(current, state)

    def place(ticket: Long, part: SegmentPart): Unit = {
      places.put(ticket, part)
      if (missing.isEmpty && current != SealState.Withdrawn) become(SealState.Durable)
    }

    def lose(reason: String): Unit =
      if (current == SealState.Sealed || current == SealState.Lost) {
        why = reason
        become(SealState.Lost)
      }

    def whyLost: String = why

    def placed: Vector[Either[Array[Byte], SegmentPart]] = parts.map {
      case SealedPart.Inline(bytes) => Left(bytes)
      case SealedPart.Stored(part) => Right(part)
      case SealedPart.Pending(ticket, _) => Right(places(ticket))
    }

    private def missing: Vector[Long] = tickets.filterNot(places.contains)
  }

  /** The attempts that may count for a store, the last one first choice. */
  private final case class Choice(store: String, candidates: Vector[(Long, Vector[SealedBy])]) {
    def durable: Option[(Long, Vector[SealedBy])] =
      candidates.reverseIterator.find(_._2.forall(_.state == SealState.Durable))

    def isSettled: Boolean =
      candidates.isEmpty || candidates.last._2.forall(_.state == SealState.Durable) ||
        candidates.forall(_._2.forall(_.state != SealState.Sealed))

    def whyLost: String =
      candidates.reverseIterator.flatMap(_._2).find(_.state == SealState.Lost).fold("it was withdrawn")(_.whyLost)
  }

  private final class Chosen(val batch: Long, val choices: Vector[Choice]) {
    val attempts: Set[Long] = choices.iterator.flatMap(_.candidates).map(_._1).toSet
    val settled: Promise[Unit] = Promise()
    private var settledChoices = 0

    /** Asked with every upload, so what was found settled is not looked at again: of a closed batch it stays so. */
    def isSettled: Boolean = {
      while (settledChoices < choices.size && choices(settledChoices).isSettled) settledChoices += 1
      settledChoices == choices.size
    }
  }
}
