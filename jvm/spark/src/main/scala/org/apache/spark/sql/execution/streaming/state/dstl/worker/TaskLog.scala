// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.worker

import java.util.WeakHashMap

import scala.util.control.NonFatal

import sparkdstl.log.error.{ProtocolErrors, SealRefusedException}
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.format.SegmentKey
import sparkdstl.log.transport.{FromDriver, SealedSegment, ToExecutor}
import sparkdstl.log.worker.{ChunkingOutputStream, RunWorker, SealedStore, SegmentWriter, TaskWriter}

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.state.dstl.metrics.LogMetrics
import org.apache.spark.sql.execution.streaming.state.dstl.transport.AttemptReports

/**
 * Connects changes of stores with the Spark task that makes them: when a task attempt completes, one message hands over all its
 * changes to the driver; when it fails, its changes are dropped.
 */
private[dstl] object TaskLog extends Logging {

  // Guarded by this. The map is weak, so an entry ends with its task.
  private val tasks = new WeakHashMap[TaskContext, Map[RunWorker, TaskWriter]]

  /**
   * Begins a changelog. None if no driver coordinates the run: then the changelog is a plain file. That of a run which has ended
   * fails when it is closed.
   *
   * @param base    the task attempt that made the local state to which the changes apply
   * @param written called with the length of the complete changelog
   */
  def begin(run: WorkedRun, key: SegmentKey, base: Option[Long], written: Long => Unit): Option[EndingStream] =
    run.worker.flatMap { worker =>
      (run.waiting.on(worker.opened()), Option(TaskContext.get())) match {
        // Spark's readers have another run than the query, and begin changelogs of stores with column families that they cancel.
        case (FromDriver.Superseded, _) => Some(EndingStream.failing(ProtocolErrors.notCoordinated(worker.id.root)))
        case (_, Some(context)) => writerOf(context, run, worker, key.batch).map { writer =>
            val segment = writer.segment(key, base)
            stream(run, segment, written)(writer.end(segment, _))(writer.abort(segment))
          }
        case (_, None) => begunWithoutTask(run, worker, key, base, written)
      }
    }

  /** Writing a chunk waits for memory to hold it. */
  private def stream(run: WorkedRun, segment: SegmentWriter, written: Long => Unit)(
      end: Array[Byte] => Unit
  )(abort: => Unit): EndingStream = {
    val chunks = new ChunkingOutputStream(segment.chunkSize, chunk => run.waiting.on(segment.add(chunk)))
    new EndingStream(chunks)({
      written(chunks.size)
      end(chunks.takeRest())
    })(abort)
  }

  /** The seal of the current task, if it changes the store, may carry a snapshot of it. */
  def carryFor(worker: RunWorker, storeDirectory: String, store: SealedStore): Unit =
    current(worker).foreach(_.carryFor(storeDirectory, store))

  /** Adds a segment that is in data files already to the current task's changes. False if no task of the run is current. */
  def addStored(worker: Option[RunWorker], segment: SealedSegment): Boolean = {
    val writer = worker.flatMap(current)
    writer.foreach(_.addStored(segment))
    writer.nonEmpty
  }

  /** The batch whose changes a task makes, once it has begun a changelog. */
  def batchOf(context: TaskContext): Option[Long] =
    synchronized(Option(tasks.get(context))).flatMap(_.values.headOption).map(_.batch)

  private def current(worker: RunWorker): Option[TaskWriter] = Option(TaskContext.get()).flatMap(known(_, worker))

  private def known(context: TaskContext, worker: RunWorker): Option[TaskWriter] =
    synchronized(Option(tasks.get(context)).flatMap(_.get(worker)))

  private def writerOf(context: TaskContext, run: WorkedRun, worker: RunWorker, batch: Long): Option[TaskWriter] =
    known(context, worker).orElse {
      run.waiting.on(worker.task(context.taskAttemptId(), batch, context.numPartitions())).map { writer =>
        synchronized {
          val others = Option(tasks.get(context)).getOrElse(Map.empty[RunWorker, TaskWriter])
          tasks.put(context, others + (worker -> writer))
        }
        run.taskBegins()
        context.addTaskCompletionListener[Unit] { ended =>
          try complete(ended, run, worker, writer)
          finally run.taskEnds()
        }: Unit
        // A listener that runs after this one may still fail the task.
        context.addTaskFailureListener((_: TaskContext, _: Throwable) => giveUp(worker, writer)): Unit
        writer
      }
    }

  private def complete(context: TaskContext, run: WorkedRun, worker: RunWorker, writer: TaskWriter): Unit =
    if (context.isFailed() || context.isInterrupted()) giveUp(worker, writer)
    else if (!writer.isEmpty) {
      val started = System.nanoTime()
      try {
        FailPoints.hit("executor.mid-task", writer.batch)
        run.waiting.on(writer.seal())
        run.waiting.on(worker.opened()) match {
          case FromDriver.Opened(accumulator, _, _, _) => AttemptReports.report(context, accumulator, writer.batch)
          case _ =>
        }
        val sealNanos = System.nanoTime() - started
        LogMetrics.report(context, writer.storeDirectories, sealNanos, writer.blockedNanos, worker.lastBarrier)
      } catch {
        case refused: SealRefusedException if refused.stale.nonEmpty =>
          logInfo(s"Task attempt ${writer.attempt} runs again: ${refused.getMessage}")
          giveUp(worker, writer)
          throw refused
        // Spark drops the error of a killed task, but logs it as an error first.
        case _: InterruptedException if context.isInterrupted() => giveUp(worker, writer)
        case NonFatal(_) if context.isInterrupted() => giveUp(worker, writer)
        case e: Throwable =>
          giveUp(worker, writer)
          throw e
      }
      FailPoints.hit("executor.after-seal", writer.batch)
    }

  /** Drops the attempt's changes; its stores are loaded again before further changes. */
  private def giveUp(worker: RunWorker, writer: TaskWriter): Unit = {
    writer.giveUp()
    worker.receive(ToExecutor.Drop(writer.attempt, writer.storeDirectories))
  }

  /**
   * Begins a changelog on a thread that is not a task's: Spark opens and closes files with checksums on a pool. That thread has no
   * task whose end could seal the changes, so each segment is sealed at its end, as a separate attempt.
   */
  private def begunWithoutTask(
      run: WorkedRun,
      worker: RunWorker,
      key: SegmentKey,
      base: Option[Long],
      written: Long => Unit
  ): Option[EndingStream] = {
    val attempt = -1L - (run.resources.runtime.random.nextUuid().getMostSignificantBits >>> 1)
    run.waiting.on(worker.task(attempt, key.batch, PartitionsWithoutTask)).map { writer =>
      val segment = writer.segment(key, base)
      stream(run, segment, written) { rest =>
        writer.end(segment, rest)
        try run.waiting.on(writer.seal()): Unit
        catch {
          case e: Throwable =>
            writer.giveUp()
            throw e
        }
      }(writer.giveUp())
    }
  }

  /** The assumed number of a stage's partitions, which only a task has: that of a large stage. */
  private val PartitionsWithoutTask = 200
}
