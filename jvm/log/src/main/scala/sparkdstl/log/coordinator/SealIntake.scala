// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.attempts.AttemptLedger
import sparkdstl.log.coordinator.view.{GuardedState, LogView, Namer}
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.{SegmentKind, SegmentPart}
import sparkdstl.log.transport.{FromDriver, RunId, SealedSegment, ToDriver}

/** Adds the seals of tasks to the ledger, and protects the data files of their snapshots from deletion. Thread-safe. */
private[coordinator] final class SealIntake(
    id: RunId,
    ledger: AttemptLedger,
    state: GuardedState,
    carriedBytes: Long,
    metrics: CommitMetrics
) {
  private val logger = LoggerFactory.getLogger(classOf[SealIntake])

  private final val CarriedBytesPerStore = 128L

  def take(from: String, seal: ToDriver.Seal): FromDriver =
    if (!state.get.isAtWork) FromDriver.Superseded
    else {
      val view = state.get.view
      val (outdated, wanted) = seal.carried.groupBy(_.key.storeDirectory)
        .partition { case (store, segments) => hasNewer(view, store, segments) }
      val missing = promised(seal, wanted)
      val there = wanted.filterNot { case (store, _) => missing.contains(Some(store)) }
      val answer =
        if (missing.contains(None))
          FromDriver.Refused(
            "data files of its snapshot may have been deleted. Spark runs the task again",
            Vector.empty
          )
        else ledger.seal(from, seal.copy(carried = there.valuesIterator.flatten.toVector), carriedLimit(view))
      answer match {
        case FromDriver.Accepted(_, notTaken) =>
          val gone = missing.toVector.collect { case (Some(store), files) => store -> files.toVector.sorted }
          FromDriver.Accepted(state.get.barrier, notTaken ++ gone ++ unneeded(view, outdated))
        // When a query is stopped, a withdrawal may overtake the seal.
        case AttemptLedger.Withdrawn => AttemptLedger.Withdrawn
        case refused: FromDriver.Refused =>
          metrics.refused()
          // Spark discards the error of a killed task.
          logger.warn(
            ProtocolErrors.sealRefused(seal.attempt, seal.batch, id.run, refused.reason, refused.stale).getMessage +
              s" It is on executor $from."
          )
          refused
        case other => other
      }
    }

  def withdraw(message: ToDriver.Withdraw): FromDriver =
    FromDriver.Withdrawal(ledger.withdraw(message.attempt, message.batch))

  def uploaded(from: String, message: ToDriver.Uploaded): FromDriver =
    answerToUnknown(message.results.filterNot { case (ticket, result) => ledger.uploaded(from, ticket, result) })

  /** Whether an entry holds the same or a later snapshot of the store. */
  private def hasNewer(view: LogView, store: String, segments: Vector[SealedSegment]): Boolean =
    view.snapshotsOf(store).lastOption.exists(held =>
      segments.exists(of => of.key.kind == SegmentKind.Snapshot && of.key.version <= held.key.version)
    )

  /**
   * By store, the files of outdated snapshots that their executor discards: those that no entry names; or all of them, if
   * entries name all, but only for other snapshots in the same files.
   */
  private def unneeded(
      view: LogView,
      outdated: Map[String, Vector[SealedSegment]]
  ): Vector[(String, Vector[String])] =
    outdated.toVector.flatMap { case (store, segments) =>
      val isHeld = view.snapshotsOf(store).exists(held => segments.exists(_.key == held.key))
      val (named, others) = filesOf(segments).partition(view.files.isNamedByEntry)
      val files = if (others.isEmpty && !isHeld) named else others
      Option.when(files.nonEmpty)(store -> files.toVector.sorted)
    }

  /**
   * Protects the data files of the seal's snapshots, which are `carried` by store, from deletion until the batch is committed.
   * Returns those that may have been deleted, by store, or None for a snapshot that is part of the commit.
   */
  private def promised(
      seal: ToDriver.Seal,
      carried: Map[String, Vector[SealedSegment]]
  ): Map[Option[String], Set[String]] = {
    val snapshots = carried.map { case (store, of) => Option(store) -> filesOf(of) } +
      (Option.empty[String] -> filesOf(seal.segments.filter(_.key.version != seal.batch + 1)))
    if (snapshots.valuesIterator.forall(_.isEmpty)) Map.empty
    else state.modify { of =>
      val (view, missing) = of.view.promised(Namer.Seal(seal.batch, seal.attempt), snapshots)
      (of.copy(view = view), missing)
    }
  }

  /**
   * Bounds the inline bytes of carried snapshots per entry, because the query waits while the entry is written; later seals
   * carry the rest. The bound grows with the number of stores, as the entry does.
   */
  private def carriedLimit(view: LogView): Long = math.max(carriedBytes, view.stores.size * CarriedBytesPerStore)

  private def filesOf(segments: Vector[SealedSegment]): Set[String] = segments.iterator.flatMap(_.files).toSet

  /**
   * Answers a report with unknown tickets. Such an upload was reported before, or its batch was committed without it. In the
   * second case the executor discards it, because its file may also hold changes of a batch under way.
   */
  private def answerToUnknown(results: Vector[(Long, Either[String, SegmentPart])]): FromDriver = {
    val now = state.get
    val unwanted = results.collect { case (ticket, Right(part)) if !part.file.exists(now.view.files.isNamed) => ticket }
    if (unwanted.isEmpty || !now.isAtWork) FromDriver.Noted else FromDriver.Unwanted(unwanted)
  }
}
