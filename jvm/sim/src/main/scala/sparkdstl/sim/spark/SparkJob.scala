// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.spark

import java.io.IOException

import scala.collection.mutable
import scala.concurrent.{Future, Promise}
import scala.util.{Failure, Success, Try}

/** An executor is lost with its running attempts, which do not count as failures of their tasks. */
final class ExecutorLost(executor: String) extends IOException(s"$executor is lost")

/** Runs the tasks of a job on executors. */
trait TaskLauncher {

  /** An attempt number that the application has not used. */
  def nextAttempt(): Long

  /** Starts an attempt on an executor and returns that executor; `result` is called when the driver learns the outcome. */
  def launch(task: TaskAttempt)(result: Try[TaskResult] => Unit): SparkExecutor

  def kill(executor: SparkExecutor, attempt: Long): Unit

  /** The delay until a speculative attempt starts; None for no speculation. */
  def speculationDelay(): Option[Double]

  def killsOutright(): Boolean

  /** Whether a successful task must run again because its output was lost with an executor. */
  def mustRecompute(): Boolean

  def later(millis: Double)(action: => Unit): Unit
}

/**
 * A job of a batch: the first successful attempt of each partition wins unless the partition is recomputed; the
 * last successful report counts.
 */
final class SparkJob(partitions: Int, task: (Int, Long) => TaskAttempt, launcher: TaskLauncher) {
  private val MaxFailures = 4
  private val done = Promise[Vector[TaskResult]]()
  private val taken = Vector.newBuilder[TaskResult]
  private val wins = mutable.Map.empty[Int, TaskResult]
  private val failures = mutable.Map.empty[Int, Int].withDefaultValue(0)
  private val running = mutable.Map.empty[Int, Map[Long, SparkExecutor]].withDefaultValue(Map.empty)
  private val recomputed = mutable.Set.empty[Int]

  /** The results that Spark takes, in that order. */
  def run(): Future[Vector[TaskResult]] = {
    (0 until partitions).foreach(start)
    done.future
  }

  private def start(partition: Int): Unit = if (!done.isCompleted) {
    val attempt = launcher.nextAttempt()
    val executor = launcher.launch(task(partition, attempt))(ended(partition, attempt, _))
    running(partition) = running(partition) + (attempt -> executor)
    launcher.speculationDelay().foreach { delay =>
      launcher.later(delay)(if (!wins.contains(partition) && running(partition).size == 1) start(partition))
    }
    if (launcher.killsOutright()) launcher.later(30)(launcher.kill(executor, attempt))
  }

  private def ended(partition: Int, attempt: Long, result: Try[TaskResult]): Unit = {
    val wasRunning = running(partition).contains(attempt)
    running(partition) = running(partition) - attempt
    if (wasRunning && !done.isCompleted) result match {
      case Success(value) => succeeded(partition, value)
      case Failure(error) => failed(partition, error)
    }
  }

  private def succeeded(partition: Int, result: TaskResult): Unit = {
    wins(partition) = result
    taken += result
    running(partition).foreach { case (attempt, executor) => launcher.kill(executor, attempt) }
    running(partition) = Map.empty
    if (wins.size == partitions) {
      if (!recomputed(partition) && launcher.mustRecompute()) {
        recomputed += partition
        val _ = wins.remove(partition)
        start(partition)
      } else {
        val _ = done.trySuccess(taken.result())
      }
    }
  }

  private def failed(partition: Int, error: Throwable): Unit = if (!wins.contains(partition)) {
    if (!error.isInstanceOf[ExecutorLost]) failures(partition) += 1
    if (failures(partition) >= MaxFailures) {
      running.values.flatten.foreach { case (attempt, executor) => launcher.kill(executor, attempt) }
      val _ = done.tryFailure(new IOException(s"task $partition failed $MaxFailures times, last: $error", error))
    } else if (running(partition).isEmpty) start(partition)
  }
}
