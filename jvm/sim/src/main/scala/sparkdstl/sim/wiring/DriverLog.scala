// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.wiring

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.coordinator.{DriverResources, RunCoordinator, RunFactory, RunSetup, Views}
import sparkdstl.log.coordinator.ownership.ListedBatches
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.request.Creation
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.Read
import sparkdstl.log.transport.{ExecutorLink, FromDriver, RunId, SealedPart, ToDriver}
import sparkdstl.sim.model.{CommitContent, Names, PlanOracle}

/**
 * A run of a query on its driver, wired like the adapter to Spark.
 *
 * @param inlineShare the number of bytes that a task may seal inline
 * @param plans checks when seals are accepted
 * @param violate reports a violation
 */
final class DriverLog(
    environment: ProcessEnvironment,
    run: RunId,
    executors: ExecutorLink,
    inlineShare: Long,
    plans: PlanOracle,
    violate: String => Unit
) {
  import environment.runtime
  private implicit val executor: ExecutionContext = environment.inline
  private val storage = environment.storage()
  private var coordinator: Option[RunCoordinator] = None
  private val host = environment.process.name
  private var closing = false
  private var hasEnded = false
  private val waits = new CommitWaits(runtime.timer, violate)

  /** Begins the run. The adapter answers Spark's first questions with the returned listings. */
  def open(): Future[ListedBatches] = {
    environment.current.foreach(_.end())
    environment.current = Some(this)
    for {
      _ <- environment.runs.whenQuiet(run.root)
      begun <- RunFactory.begin(
        storage,
        RunSetup(run.run, host, host, accumulator = 1L, environment.options, environment.constants.limits),
        DriverResources(executors, environment.inlineBudget, environment.commitMetrics)
      )
    } yield {
      // A query that is stopped during its start has no run, as in the adapter, where the wait is interrupted.
      if (!closing) {
        coordinator = Some(begun.coordinator)
        environment.runs.begin(begun.coordinator): Unit
      }
      begun.listed
    }
  }

  def handle(executor: String, message: ToDriver): Future[FromDriver] = {
    message match {
      case seal: ToDriver.Seal =>
        waits.hasSealed(seal.attempt, executor)
        val inline = seal.segments.flatMap(_.parts).collect { case SealedPart.Inline(bytes) => bytes.length }.sum
        if (inline > inlineShare) violate(s"attempt ${seal.attempt} seals $inline bytes inline, limit $inlineShare")
      case _ =>
    }
    val hasEnded = coordinator.exists(!_.isAtWork)
    environment.runs.answer(executor, run, message).map { answer =>
      (message, answer) match {
        case (seal: ToDriver.Seal, _: FromDriver.Accepted) =>
          if (hasEnded) violate(s"run ${run.run} takes a seal although it has ended")
          plans.accepted(s"run ${run.run}", seal.batch)
        case _ =>
      }
      answer
    }(environment.inline)
  }

  /** Whether the run coordinates its query. */
  def hasBegun: Boolean = coordinator.nonEmpty

  /** Whether the next batch's tasks may run while its offsets are written. */
  def mayPlanAhead: Boolean = coordinator.exists(_.mayPlanAhead)

  /** Begins the write of the source's entry, which the next batch's offsets name. */
  def planSource(number: Long, content: Array[Byte]): Future[Unit] = {
    val entry = new Path(Names.sourceEntry(number))
    coordinator.get.plans.source(entry, content)(create(entry, content)(ProtocolErrors.sourceTakenByOther(entry, None)))
  }

  /** Begins the write of the batch's offsets. */
  def planOffsets(batch: Long, content: Array[Byte]): Future[Unit] = {
    val entry = new Path(Names.offset(batch))
    coordinator.get.plans.offsets(batch, entry, content)(
      create(entry, content)(ProtocolErrors.begunByOther(entry, None))
    )
  }

  /** As the adapter creates plain files. */
  private def create(file: Path, content: Array[Byte])(taken: => Throwable): Future[Unit] =
    storage.checkpoint.create(file, Payload(content), storage.timeoutMillis)(_.bytes.sameElements(content))
      .flatMap(_.ofWrite(file, storage.timeoutMillis)).flatMap {
        case Creation.Ours => Future.unit
        case _: Creation.Taken => Future.failed(taken)
      }

  /** Whether tasks have sealed changes of the batch; false if Spark ran no task because the sink has the batch. */
  def hasSeals(batch: Long): Boolean = coordinator.get.hasSeals(batch)

  /**
   * Closes `commits/<batch>`. Fails when Spark's stream would throw.
   *
   * @param reported the attempts whose results Spark has taken for the batch, in that order
   */
  def commit(batch: Long, sparkContent: Array[Byte], reported: Seq[Long]): Future[Unit] = {
    val begun = coordinator.get
    begun.commit(batch, sparkContent, reported).andThen { case result =>
      result.failed.foreach(waits.hasFailed(_, reported))
      Views.leftOf(begun, batch).foreach(violate)
    }
  }

  /** The batches of the listed entries. */
  def batches(): Future[Seq[Long]] = storage.batches()

  /** The two lines of an entry that Spark reads. */
  def readEntry(batch: Long): Future[Option[Array[Byte]]] = {
    val entry = storage.location.entry(batch)
    storage.read(entry, Read(entry, 1L << 20)).map(_.map(CommitContent.lines))
  }

  /** Deletes an entry on request of Spark or a tool, even after the end of the run. */
  def delete(batch: Long): Future[Unit] =
    environment.runs.on(run.root).filter(_.isAtWork) match {
      case Some(current) => current.deleteEntry(batch)
      case None => environment.deleteUnowned(batch)
    }

  def executorLost(executor: String): Unit = {
    waits.isLost(executor)
    environment.runs.executorLost(executor, "it was lost")
  }

  /** Ends the run some time after its query: the adapter notices the end of a query with a delay. */
  def close(): Unit = {
    closing = true
    val _ = runtime.timer.schedule((runtime.random.nextDouble() * 5000).toLong)(() => end())
  }

  private def end(): Unit = if (!hasEnded) {
    hasEnded = true
    waits.runEnds()
    environment.runs.end(run): Unit
    val quiet = coordinator.fold(Future.unit)(_.close()).transformWith { _ =>
      storage.close()
      runtime.within(30000, storage.whenQuiet)(())
    }
    environment.runs.busyUntil(run.root, quiet)
  }
}
