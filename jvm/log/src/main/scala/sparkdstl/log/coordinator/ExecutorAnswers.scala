package sparkdstl.log.coordinator

import java.util.concurrent.atomic.AtomicBoolean

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.attempts.AttemptLedger
import sparkdstl.log.coordinator.view.{Guarded, LogView, Namer, RecoveryPlan, RunState}
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.{QueryLocation, SegmentKind, SegmentPart, Writer}
import sparkdstl.log.transport.{FromDriver, SealedPart, SealedSegment, ToDriver}

/**
 * The driver's answers to messages of one run's executors that need nothing from storage. Thread-safe.
 *
 * @param opened
 *   the answer to the first message of an executor
 * @param carriedBytes
 *   of carried snapshots that a commit entry takes, if there are few stores
 */
private[coordinator] final class ExecutorAnswers(
    location: QueryLocation,
    writer: Writer,
    opened: FromDriver.Opened,
    ledger: AttemptLedger,
    state: Guarded[RunState],
    restart: RestartWatch,
    carriedBytes: Long,
    metrics: CommitMetrics
) {
  import ExecutorAnswers._

  private val bypassed = new AtomicBoolean

  def open: FromDriver = opened

  def withdraw(message: ToDriver.Withdraw): FromDriver =
    FromDriver.Withdrawal(ledger.withdraw(message.attempt, message.batch))

  def uploaded(from: String, message: ToDriver.Uploaded): FromDriver = {
    val unknown = message.results.filterNot { case (ticket, result) => ledger.uploaded(from, ticket, result) }
    answerToUnknown(unknown)
  }

  /** Once the snapshots that existed at the start are known. */
  def versions(message: ToDriver.ListStore): FromDriver = RecoveryPlan.of(state.get.view, message.storeDirectory)

  def asked(message: ToDriver.ListStore): Unit = restart.asked(message.storeDirectory)

  def bypass(message: ToDriver.PastTheLog): FromDriver = {
    if (!bypassed.getAndSet(true)) logger.warn(s"Nothing of ${location.root} goes to the log: ${message.why}")
    FromDriver.Noted
  }

  def sealing(from: String, seal: ToDriver.Seal): FromDriver =
    if (!state.get.isAtWork) FromDriver.Superseded
    else {
      val view = state.get.view
      val wanted =
        seal.copy(carried = seal.carried.filterNot(of => hasNewer(view, of.key.storeDirectory, zipOf(seal, of))))
      val (there, missing) = promised(wanted)
      val answer =
        if (missing.contains(None))
          FromDriver.Refused("data files that its snapshot consists of are gone", Vector.empty)
        else ledger.seal(from, wanted.copy(carried = there), carriedLimit(view))
      answer match {
        case FromDriver.Accepted(_, notTaken) =>
          val gone = missing.toVector.collect { case (Some(store), files) => store -> files.toVector.sorted }
          FromDriver.Accepted(state.get.barrier, notTaken ++ gone)
        // As when a query is stopped: two messages of one executor may overtake each other.
        case AttemptLedger.Withdrawn => AttemptLedger.Withdrawn
        case refused: FromDriver.Refused =>
          metrics.refused()
          // Spark drops the error with which a killed task fails.
          logger.warn(
            ProtocolErrors.sealRefused(seal.attempt, seal.batch, writer.run, refused.reason, refused.stale).getMessage +
              s" It is on executor $from."
          )
          refused
        case other => other
      }
    }

  /** An entry holds that snapshot of the store already, or a later one: it need not be carried once more. */
  private def hasNewer(view: LogView, store: String, version: Option[Long]): Boolean =
    view.snapshotsOf(store).lastOption.exists(held => version.exists(_ <= held.key.version))

  private def zipOf(seal: ToDriver.Seal, segment: SealedSegment): Option[Long] = seal.carried.collectFirst {
    case zip if zip.key.kind == SegmentKind.Snapshot && zip.key.storeDirectory == segment.key.storeDirectory =>
      zip.key.version
  }

  /**
   * Data files that the seal's snapshots consist of are not deleted from now on until the batch is committed.
   *
   * @return
   *   the carried snapshots whose files are all there; and, by store, or None for what is part of the commit, files that may be
   *   gone
   */
  private def promised(seal: ToDriver.Seal): (Vector[SealedSegment], Map[Option[String], Set[String]]) = {
    val carried = seal.carried.groupBy(of => Option(of.key.storeDirectory))
    val snapshots = carried.map { case (store, of) => store -> filesOf(of) } +
      (Option.empty[String] -> filesOf(seal.segments.filter(_.key.version != seal.batch + 1)))
    val missing =
      if (snapshots.valuesIterator.forall(_.isEmpty)) Map.empty[Option[String], Set[String]]
      else state.modify { of =>
        val (view, missing) = of.view.promised(Namer.Seal(seal.batch, seal.attempt), snapshots)
        (of.copy(view = view), missing)
      }
    (seal.carried.filterNot(of => missing.contains(Some(of.key.storeDirectory))), missing)
  }

  /**
   * A commit entry is written while the query waits for it. So it takes a bounded number of bytes of snapshots, and the rest
   * comes with later seals. The bound grows with the number of stores, as the entry itself does.
   */
  private def carriedLimit(view: LogView): Long = math.max(carriedBytes, view.stores.size * CarriedBytesPerStore)

  private def filesOf(segments: Vector[SealedSegment]): Set[String] =
    segments.iterator.flatMap(_.parts).collect { case SealedPart.Stored(part) => part }.flatMap(_.file).toSet

  /**
   * Uploads of which the ledger knows nothing are reported for a second time, or belong to a batch that was committed without
   * them. Then their executor is to discard them: their files may hold what a batch under way needs.
   */
  private def answerToUnknown(results: Vector[(Long, Either[String, SegmentPart])]): FromDriver = {
    val now = state.get
    val unwanted = results.collect { case (ticket, Right(part)) if !part.file.exists(now.view.files.isNamed) => ticket }
    if (unwanted.isEmpty || !now.isAtWork) FromDriver.Noted else FromDriver.Unwanted(unwanted)
  }
}

private object ExecutorAnswers {
  private val logger = LoggerFactory.getLogger(classOf[ExecutorAnswers])

  private val CarriedBytesPerStore = 128L
}
