// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import java.util.concurrent.CancellationException

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success, Try}

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.SegmentKey
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{BarrierReport, FromDriver, RunId, SealedSegment, ToDriver}

/**
 * The segments of one task attempt, and the message that seals them.
 *
 * States: open, while segments are written; sealing, until the driver answers; then sealed or given up. If a task is given up
 * during sealing, it is unknown whether the driver has accepted its seal. Then the writer withdraws the seal, and discards
 * uploads only if the driver answers that they are in no commit.
 *
 * @param attempt Spark's number of the task attempt
 * @param inlineLimit bytes that the task may seal inline
 */
final class TaskWriter private[worker] (
    val attempt: Long,
    val batch: Long,
    inlineLimit: Long,
    options: LogOptions,
    run: RunId,
    ask: AskUntilAnswered,
    uploads: () => SegmentUploads,
    noteBarrier: BarrierReport => Unit,
    runtime: ProtocolRuntime
) {
  import TaskWriter._
  private implicit val executor: ExecutionContext = runtime.executor

  // Guarded by this.
  private var state: State = Open
  private val writing = mutable.LinkedHashSet.empty[SegmentWriter]
  private val ended = mutable.LinkedHashSet.empty[SegmentWriter]
  private val stores = mutable.LinkedHashMap.empty[String, SealedStore]
  private val stored = mutable.ArrayBuffer.empty[SealedSegment]
  private var carried = Map.empty[String, Vector[SealedSegment]]
  private val outcome = Promise[Unit]()
  // Whether a seal was sent, and how many sends timed out. The driver may accept those even later.
  private var asked = false
  private var timeouts = 0

  /** Begins a segment; [[SealedSegment]] explains `base`. Throws an `IllegalStateException` after [[seal]] or [[giveUp]]. */
  def segment(key: SegmentKey, base: Option[Long]): SegmentWriter = synchronized {
    if (state != Open)
      throw new IllegalStateException(s"task attempt $attempt takes no more segments: ${key.relativePath}")
    val writer = new SegmentWriter(key, base, options.preemptivePersistThreshold.toInt, uploads, runtime)
    writing += writer
    writer
  }

  /** Completes a segment with its last bytes. Throws an `IllegalStateException` if the task was sealed without it. */
  def end(segment: SegmentWriter, rest: Array[Byte]): Unit = synchronized {
    if (!writing.remove(segment))
      throw new IllegalStateException(s"task attempt $attempt has ended without ${segment.key.relativePath}")
    segment.end(rest)
    ended += segment
  }: Unit

  def abort(segment: SegmentWriter): Unit =
    if (synchronized(writing.remove(segment))) segment.discard()

  /** Registers a store whose snapshot the seal may carry, and which gets the outcome. */
  def carryFor(storeDirectory: String, store: SealedStore): Unit =
    synchronized(stores.put(storeDirectory, store)): Unit

  /** Adds a segment that is already in data files to the seal. */
  def addStored(segment: SealedSegment): Unit = synchronized(stored += segment): Unit

  def storeDirectories: Vector[String] =
    synchronized((writing ++ ended).iterator.map(_.key.storeDirectory).toVector.distinct)

  /** The time that the task has waited for memory for its chunks. */
  def blockedNanos: Long = synchronized((writing ++ ended).iterator.map(_.blockedNanos).sum)

  def isEmpty: Boolean = synchronized(ended.isEmpty)

  /**
   * Seals the complete segments, and aborts the others. If it fails, the task must fail: the driver has refused the seal
   * ([[sparkdstl.log.error.SealRefusedException]]), or has not answered in time.
   */
  def seal(): Future[Unit] = {
    val (begins, unfinished, segments) = synchronized {
      val begins = state == Open
      if (begins) state = Sealing
      (begins, writing.toVector, ended.toVector)
    }
    if (begins) {
      unfinished.foreach(abort)
      if (segments.isEmpty) conclude(Sealed, Success(()))
      else sealAll(segments)
    }
    outcome.future
  }

  /** Gives up the task after it has failed or was killed. Withdraws its seal in the background. */
  def giveUp(): Unit = {
    val before = synchronized {
      val before = state
      if (state != GivenUp) state = GivenUp
      before
    }
    before match {
      case Open => discardAll()
      case Sealing | Sealed => withdraw()
      case GivenUp =>
    }
    if (before != GivenUp) giveUpStores()
    outcome.tryFailure(new CancellationException(s"task attempt $attempt was given up")): Unit
  }

  private def sealAll(segments: Vector[SegmentWriter]): Unit =
    uploadWhatIsTooLarge(segments).flatMap(_ => handOver(segments)).onComplete {
      case Success(()) =>
      case Failure(error) =>
        if (conclude(GivenUp, Failure(error))) {
          // Before the first send, there is no seal to withdraw.
          if (synchronized(asked)) withdraw() else discardAll()
          giveUpStores()
        }
    }

  /** Uploads segments that exceed the limits. The smallest ones stay inline. */
  private def uploadWhatIsTooLarge(segments: Vector[SegmentWriter]): Future[Unit] = {
    var left = inlineLimit
    val large = segments.sortBy(_.restLength).filterNot { segment =>
      val stays = segment.restLength <= options.inlineMaxSegmentSize && segment.restLength <= left
      if (stays) left -= segment.restLength
      stays
    }
    uploadRests(large)
  }

  private def uploadRests(segments: Vector[SegmentWriter]): Future[Unit] =
    segments.foldLeft(Future.unit)((before, segment) => before.flatMap(_ => segment.uploadRest()))

  private def handOver(segments: Vector[SegmentWriter]): Future[Unit] = {
    // Throws if an upload has failed: before snapshots are carried.
    val own = segments.map(_.sealedSegment)
    // All sends carry the same snapshots.
    val message = synchronized {
      if (carried.isEmpty && state == Sealing)
        carried = stores.iterator.map { case (store, of) => store -> of.carried(batch) }.toMap
      val snapshots = carried.valuesIterator.flatten.toVector
      val seal = ToDriver.Seal(attempt, batch, own ++ stored, snapshots)
      if (state == Sealing) asked = true
      Option.when(state == Sealing)(seal)
    }
    // Without a message the task was given up, and its earlier seal is being withdrawn.
    message.fold(Future.unit)(
      ask(_, options.commitTimeoutMs, () => synchronized(state == Sealing)).transformWith {
        case Success(answer) => answered(segments, answer)
        case Failure(error) =>
          Future.failed(ProtocolErrors.sealUnanswered(attempt, batch, options.commitTimeoutMs, error))
      }
    )
  }

  private def answered(segments: Vector[SegmentWriter], answer: AskUntilAnswered.Answer): Future[Unit] = {
    val mayBeTaken = synchronized {
      timeouts += answer.timeouts
      timeouts > 0
    }
    answer.message match {
      case FromDriver.Accepted(barrier, notTaken) =>
        barrier.foreach(noteBarrier)
        if (conclude(Sealed, Success(()))) {
          segments.foreach(_.report())
          tellStores(notTaken.toMap)
        }
        Future.unit
      case FromDriver.OverBudget => uploadRests(segments).flatMap(_ => handOver(segments))
      case FromDriver.Refused(reason, stale) =>
        val error = ProtocolErrors.sealRefused(attempt, batch, run.run, reason, stale)
        // The driver may have accepted an earlier send before it closed the batch.
        if (mayBeTaken) Future.failed(error) else ended(error, mayBeCommitted = false)
      case FromDriver.Superseded | FromDriver.NotCoordinated =>
        // The run that has ended may have accepted an earlier send and committed it.
        ended(ProtocolErrors.notCoordinated(run.root), mayBeTaken)
      // Not even an earlier send counts: the run commits no batch whose plan has failed.
      case failed: FromDriver.NotPlanned => ended(failed.error, mayBeCommitted = false)
      case other => Future.failed(new IllegalStateException(s"the driver answered a seal with $other"))
    }
  }

  private def tellStores(notTaken: Map[String, Vector[String]]): Unit = sealedStores.foreach {
    case (directory, store, hasCarried) => store.accepted(hasCarried, notTaken.get(directory))
  }

  private def ended(error: Throwable, mayBeCommitted: Boolean): Future[Unit] = {
    if (conclude(GivenUp, Failure(error)))
      if (mayBeCommitted) giveUpStores()
      else {
        discardAll()
        sealedStores.foreach { case (_, store, hasCarried) => if (hasCarried) store.refused() }
      }
    Future.unit
  }

  private def giveUpStores(): Unit = sealedStores.foreach { case (_, store, _) => store.givenUp() }

  /** The stores: directory, store, and whether the seal carried its snapshot. */
  private def sealedStores: Vector[(String, SealedStore, Boolean)] = synchronized {
    stores.iterator.map { case (directory, store) =>
      (directory, store, carried.get(directory).exists(_.nonEmpty))
    }.toVector
  }

  private def withdraw(): Unit =
    ask(ToDriver.Withdraw(attempt, batch), WithdrawTimeoutMillis).foreach { answer =>
      answer.message match {
        case FromDriver.Withdrawal(false) => discardAll()
        // The barrier may wait for it.
        case FromDriver.Withdrawal(true) => synchronized(ended.toVector).foreach(_.report())
        // The last commit of the ended run may name the uploads: the sweep of a later run decides.
        case _ =>
      }
    }

  /** Ends the sealing; false if the task was given up. */
  private def conclude(to: State, result: Try[Unit]): Boolean = {
    val isFirst = synchronized {
      val isFirst = state == Sealing
      if (isFirst) state = to
      isFirst
    }
    if (isFirst) outcome.tryComplete(result): Unit
    isFirst
  }

  private def discardAll(): Unit = synchronized((writing ++ ended).toVector).foreach(_.discard())
}

private object TaskWriter {
  private sealed trait State
  private case object Open extends State
  private case object Sealing extends State
  private case object Sealed extends State
  private case object GivenUp extends State

  /** An hour, after which the driver or its query has most likely ended. */
  private val WithdrawTimeoutMillis = 3600L * 1000
}
