package org.apache.spark.sql.execution.streaming.state.dstl.worker

import java.util.WeakHashMap

import scala.util.control.NonFatal

import sparkdstl.log.error.SealRefusedException
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.format.SegmentKey
import sparkdstl.log.transport.ToExecutor
import sparkdstl.log.transport.FromDriver
import sparkdstl.log.transport.SealedSegment
import sparkdstl.log.worker.{RunWorker, SealedStore, SegmentWriter, TaskWriter}

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.state.dstl.transport.AttemptReports
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.Waiting
import org.apache.spark.sql.execution.streaming.state.dstl.metrics.LogMetrics

/**
 * A changelog on its way into the log.
 *
 * @param chunkSize of what is added, in bytes
 * @param add       adds a chunk; waits for memory to hold it
 * @param end       the segment is complete with these last bytes
 * @param abort     it will not be completed
 */
private[dstl] final case class OpenSegment(
    chunkSize: Int,
    add: Array[Byte] => Unit,
    end: Array[Byte] => Unit,
    abort: () => Unit
)

private object OpenSegment {
  def apply(segment: SegmentWriter, waiting: Waiting)(end: Array[Byte] => Unit, abort: () => Unit): OpenSegment =
    OpenSegment(segment.chunkSize, chunk => waiting.on(segment.add(chunk)), end, abort)
}

/**
 * Ties what stores write to the Spark task that writes it: everything that a task attempt has written is handed to the
 * driver in one ask when the task completes, and is given up when it fails.
 */
private[dstl] object TaskLog extends Logging {

  // Guarded by this. Entries go with their tasks.
  private val tasks = new WeakHashMap[TaskContext, Map[RunWorker, TaskWriter]]

  /**
   * Begins a changelog. None if the driver does not coordinate the run: it is to be a plain file.
   *
   * @param base the task attempt that left the local state which the changes are based on
   */
  def begin(run: WorkedRun, key: SegmentKey, base: Option[Long]): Option[OpenSegment] =
    run.worker.flatMap { worker =>
      Option(TaskContext.get()) match {
        case Some(context) => writerOf(context, run, worker, key.batch).map { writer =>
            val segment = writer.segment(key, base)
            OpenSegment(segment, run.waiting)(writer.end(segment, _), () => writer.abort(segment))
          }
        case None => begunWithoutTask(worker, key, base, run.waiting)
      }
    }

  /** The seal of the current task, if it changes the store, may carry a snapshot of it. */
  def carryFor(worker: RunWorker, storeDirectory: String, store: SealedStore): Unit =
    current(worker).foreach(_.carryFor(storeDirectory, store))

  /** The current task commits a file that is in data files already. False if it cannot. */
  def addStored(worker: Option[RunWorker], segment: SealedSegment): Boolean =
    worker.flatMap(current).fold(false) { writer =>
      writer.addStored(segment)
      true
    }

  private def current(worker: RunWorker): Option[TaskWriter] =
    Option(TaskContext.get()).flatMap(context => synchronized(Option(tasks.get(context)).flatMap(_.get(worker))))

  private def writerOf(
      context: TaskContext,
      run: WorkedRun,
      worker: RunWorker,
      batch: Long
  ): Option[TaskWriter] = {
    val known = synchronized(Option(tasks.get(context)).flatMap(_.get(worker)))
    known.orElse {
      run.waiting.on(worker.task(context.taskAttemptId(), batch, context.numPartitions())).map { writer =>
        synchronized {
          tasks.put(
            context,
            Option(tasks.get(context)).getOrElse(Map.empty[RunWorker, TaskWriter]) + (worker -> writer)
          )
        }
        run.taskBegins()
        context.addTaskCompletionListener[Unit] { ended =>
          try complete(ended, worker, writer, run.waiting)
          finally run.taskEnds()
        }: Unit
        // A listener that runs after ours may still fail the task.
        context.addTaskFailureListener((_: TaskContext, _: Throwable) => giveUp(worker, writer)): Unit
        writer
      }
    }
  }

  private def complete(context: TaskContext, worker: RunWorker, writer: TaskWriter, waiting: Waiting): Unit =
    if (context.isFailed() || context.isInterrupted()) giveUp(worker, writer)
    else if (!writer.isEmpty) {
      val started = System.nanoTime()
      try {
        FailPoints.hit("executor.mid-task", writer.batch)
        waiting.on(writer.seal())
        report(context, worker, writer, waiting)
        val sealNanos = System.nanoTime() - started
        LogMetrics.report(context, writer.storeDirectories, sealNanos, writer.blockedNanos, worker.lastBarrier)
      } catch {
        case refused: SealRefusedException if refused.stale.nonEmpty =>
          logInfo(s"Task attempt ${writer.attempt} runs again: ${refused.getMessage}")
          giveUp(worker, writer)
          throw refused
        // Spark throws away what a killed task ends with, but not before it has logged it as an error.
        case _: InterruptedException if context.isInterrupted() => giveUp(worker, writer)
        case NonFatal(_) if context.isInterrupted() => giveUp(worker, writer)
        case e: Throwable =>
          giveUp(worker, writer)
          throw e
      }
      FailPoints.hit("executor.after-seal", writer.batch)
    }

  private def report(context: TaskContext, worker: RunWorker, writer: TaskWriter, waiting: Waiting): Unit =
    waiting.on(worker.opened()) match {
      case FromDriver.Opened(accumulator, _, _) => AttemptReports.report(context, accumulator, writer.batch)
      case _ =>
    }

  /** What the attempt has written does not count, and what it left in its stores is not to be built on. */
  private def giveUp(worker: RunWorker, writer: TaskWriter): Unit = {
    writer.giveUp()
    worker.receive(ToExecutor.Drop(writer.attempt, writer.storeDirectories))
  }

  /**
   * On a thread that is not the task's: a wrapper of Spark's opens and closes files on a pool of its own. Nobody tells then when
   * the task ends, so each segment is sealed for itself, as an attempt of its own.
   */
  private def begunWithoutTask(
      worker: RunWorker,
      key: SegmentKey,
      base: Option[Long],
      waiting: Waiting
  ): Option[OpenSegment] = {
    val attempt = -1L - (java.util.concurrent.ThreadLocalRandom.current().nextLong() >>> 1)
    waiting.on(worker.task(attempt, key.batch, PartitionsWithoutTask)).map { writer =>
      val segment = writer.segment(key, base)
      OpenSegment(segment, waiting)(
        rest => {
          writer.end(segment, rest)
          try waiting.on(writer.seal())
          catch {
            case e: Throwable =>
              writer.giveUp()
              throw e
          }
        },
        () => writer.giveUp()
      )
    }
  }

  /** The stage's partitions are not known where there is no task: a large stage is assumed. */
  private val PartitionsWithoutTask = 200
}
