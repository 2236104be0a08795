// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import scala.concurrent.{ExecutionContext, Future}
import scala.util.Failure

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.attempts.AttemptLedger
import sparkdstl.log.coordinator.view.{GuardedState, RunPhase}
import sparkdstl.log.format.{EncodedEntry, SegmentEntry, SegmentKind}
import sparkdstl.log.request.Deadline
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.BarrierReport

/** A created entry. Its segments were durable after `waitMillis`; its creation took another `writeMillis`. */
private[coordinator] final case class WrittenEntry(entry: EncodedEntry, waitMillis: Long, writeMillis: Long)

/** Commits batches: waits at the barrier, creates the entry, and adds it to the view. */
private[coordinator] final class BatchCommit(
    state: GuardedState,
    ledger: AttemptLedger,
    barrier: Barrier,
    entries: EntryWriter,
    plans: BatchPlans,
    timeoutMillis: Long,
    metrics: CommitMetrics,
    runtime: ProtocolRuntime
) {
  private val logger = LoggerFactory.getLogger(classOf[BatchCommit])
  private implicit val executor: ExecutionContext = runtime.executor

  /** Creates the entry of `batch`; see [[RunCoordinator.commit]]. */
  def write(batch: Long, content: Array[Byte], reported: Seq[Long]): Future[WrittenEntry] = {
    val deadline = new Deadline(runtime.timer, timeoutMillis)
    val written = for {
      _ <- Future(barrier.close(batch, entries.checkpointIds(batch, content), reported))
      segments <- barrier.await(batch, timeoutMillis)
      _ <- plans.durable(batch)
      waitMillis = deadline.elapsedMillis
      entry <- entries.write(batch, content, plans.checksum(batch), segments, deadline)
    } yield WrittenEntry(entry, waitMillis, deadline.elapsedMillis - waitMillis)
    written.andThen { case Failure(_) => metrics.failed() }
  }

  def committed(batch: Long, written: WrittenEntry): Unit = {
    import written._
    val report = state.modify { of =>
      val view = of.view.committed(batch, entry.index, entry.payload.length.toLong)
      val report = reportOf(batch, written, view.bytes)
      val sealsAll = of.view.stores.nonEmpty && of.view.stores.forall(entry.index.changedStores.toSet)
      (of.copy(view = view, barrier = Some(report), restart = None, sealsAll = sealsAll), report)
    }
    // After the view has the files: an executor would delete those of a repeated report that neither knows.
    val unused = ledger.committed(batch)
    state.update { of =>
      val phase = if (of.phase == RunPhase.Committing) RunPhase.Running else of.phase
      of.copy(view = of.view.release(unused), phase = phase)
    }: Unit
    metrics.committed(report)
    logger.info(
      s"Batch $batch: ${report.segments} segments durable after $waitMillis ms, commit entry of ${report.entryBytes} " +
        s"bytes written in $writeMillis ms"
    )
  }

  def interrupt(error: Throwable): Unit = barrier.end(error)

  /** The report of the barrier of `batch`, without the segments of snapshots of earlier versions. */
  private def reportOf(batch: Long, written: WrittenEntry, logBytes: Long): BarrierReport = {
    import written._
    val segments = entry.index.entries.filter(_.key.batch == batch)
    val (outside, inside) = segments.flatMap(_.parts).partition(_.file.nonEmpty)
    val ofSnapshots = entry.index.entries.filter(_.key.kind.isOfSnapshot)
    BarrierReport(
      batch,
      waitMillis,
      writeMillis,
      entry.payload.length,
      inside.iterator.map(_.length.toLong).sum,
      outside.iterator.map(_.length.toLong).sum,
      logBytes,
      newIn(ofSnapshots).flatMap(_.parts).map(_.length.toLong).sum,
      segments.size,
      ofSnapshots.count(_.key.kind == SegmentKind.Snapshot)
    )
  }

  /** The segments of new snapshots, without files of earlier snapshots, which have a lower version. */
  private def newIn(ofSnapshots: Seq[SegmentEntry]): Iterator[SegmentEntry] = {
    val zips = ofSnapshots.iterator.map(_.key).filter(_.kind == SegmentKind.Snapshot)
      .map(zip => zip.storeDirectory -> zip.version).toSet
    ofSnapshots.iterator.filter(of => zips(of.key.storeDirectory -> of.key.version))
  }
}
