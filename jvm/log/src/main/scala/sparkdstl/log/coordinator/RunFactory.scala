// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import org.slf4j.LoggerFactory

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.attempts.{AttemptLedger, InlineBudget}
import sparkdstl.log.coordinator.ownership.{ClaimedEpoch, Claims, EpochClaimer, ListedBatches}
import sparkdstl.log.coordinator.retention.{Cleanup, Deleter, OrphanSweep, RetentionRounds}
import sparkdstl.log.coordinator.view.{GuardedState, Restart, RunState}
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.Writer
import sparkdstl.log.read.{EntryReader, LoadedEntry}
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.transport.{ExecutorLink, FromDriver, RunId}

/**
 * The parameters of a new run. In the accumulator with the id `accumulator` tasks report their attempts. With `plainSnapshots`
 * executors write snapshots as plain files, as Spark 3.5 does.
 */
final case class RunSetup(
    run: UUID,
    host: String,
    application: String,
    accumulator: Long,
    options: LogOptions,
    limits: RunLimits = RunLimits(),
    plainSnapshots: Boolean = false
)

/** The resources that all runs of a driver share. */
final case class DriverResources(executors: ExecutorLink, budget: InlineBudget, metrics: CommitMetrics)

/** A run that has begun, and what its start has read: the batches after its claim, and the newest commit entry if it has a log. */
final case class BegunRun(coordinator: RunCoordinator, listed: ListedBatches, newest: Option[LoadedEntry]) {

  /** The newest committed batch, if its entry in `offsets` is missing. */
  def committedWithoutOffsets: Option[Long] =
    listed.missingOffsets(coordinator.lastCommitted).filter(_ == coordinator.lastCommitted)

  /** A batch whose entry in `offsets` is missing although a query with state cannot start without it. */
  def missingOffsets: Option[Long] =
    if (coordinator.stores.isEmpty) None else listed.missingOffsets(coordinator.lastCommitted)
}

/** Begins runs: claims an epoch, and assembles the coordinator. */
object RunFactory {
  private val logger = LoggerFactory.getLogger(classOf[RunCoordinator])

  def begin(storage: QueryStorage, setup: RunSetup, driver: DriverResources): Future[BegunRun] = {
    implicit val executor: ExecutionContext = storage.runtime.executor
    val root = storage.location.root
    val entries = new EntryReader(storage, setup.limits.fetchLength)
    new EpochClaimer(storage, entries, setup.run, setup.host).claim().map { claimed =>
      if (!claimed.exclusive) {
        if (setup.options.requireExclusiveCreate) throw ProtocolErrors.notExclusive(root)
        logger.warn(
          s"The storage of $root does not create objects exclusively. Two drivers on this checkpoint may both commit a batch " +
            "before one of them notices. The run reads again before and after each commit entry, and deletes nothing of other " +
            "runs. Set spark.sql.streaming.stateStore.dstl.storage.requireExclusiveCreate=true to refuse such storage."
        )
      }
      BegunRun(assemble(storage, setup, driver, claimed, entries), claimed.listed, claimed.newest.logged)
    }
  }

  private def assemble(
      storage: QueryStorage,
      setup: RunSetup,
      driver: DriverResources,
      claimed: ClaimedEpoch,
      entries: EntryReader
  )(implicit executor: ExecutionContext): RunCoordinator = {
    import setup.{limits, options}
    import driver.metrics
    import storage.runtime
    val id = RunId(storage.location.root.toString, setup.run)
    val stores = claimed.view.stores
    val restart = Option.when(stores.nonEmpty)(Restart(stores.size, stores.toSet))
    val state = new GuardedState(RunState(
      claimed.view,
      claimed.exclusive,
      restart = restart,
      claims = Map(claimed.view.epoch -> Some(claimed.claim))
    ))
    val ledger = new AttemptLedger(driver.budget)
    ledger.forget(claimed.view.newest): Unit
    val snapshots = new SnapshotListing(state, entries, claimed.newest)
    val fencing = new Claims(storage, state, limits.fencingRuns)
    val deleter = new Deleter(storage, entries)
    val rounds = new RetentionRounds(
      storage,
      state,
      deleter,
      entries,
      fencing,
      limits.retention,
      options.pinsMaxDurationMs,
      metrics.deletionFailed
    )
    val sweep = new OrphanSweep(storage, entries, fencing, state)
    val cleanup = new Cleanup(storage, state, deleter, rounds, sweep, claimed.claim)
    val plans = new BatchPlans(
      for (entry <- claimed.newest.logged; sums <- entry.index.spark; offsets <- sums.offsets) yield entry.batch ->
        offsets,
      () => state.get.isAtWork,
      () => ProtocolErrors.runEnded(setup.run)
    )
    val answers = new ExecutorAnswers(
      id,
      FromDriver.Opened(setup.accumulator, claimed.view.epoch, options.inlineMaxBatchSize, _),
      state,
      new SealIntake(id, ledger, state, limits.carriedBytes, metrics),
      plans,
      snapshots,
      new RestartWatch(id.root, state, runtime.timer),
      cleanup
    )
    val writer = Writer(setup.run, claimed.view.epoch, setup.host, setup.application)
    val batches = new BatchCommit(
      state,
      ledger,
      new Barrier(id, ledger, driver.executors, runtime),
      new EntryWriter(storage, entries, writer, state, snapshots, limits.listEvery, setup.plainSnapshots),
      plans,
      storage.timeoutMillis,
      metrics,
      runtime
    )
    new RunCoordinator(id, state, ledger, answers, batches, plans, cleanup, runtime)
  }
}
