// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.driver

import java.util.concurrent.{Executors, ThreadFactory}

import scala.concurrent.{Await, ExecutionContext}
import scala.concurrent.duration._

import org.apache.hadoop.fs.Path

import sparkdstl.bench.DriverLoad
import sparkdstl.log.config.{LogOptions, RetryPolicy}
import sparkdstl.log.coordinator._
import sparkdstl.log.coordinator.attempts.InlineBudget
import sparkdstl.log.format.QueryLocation
import sparkdstl.log.request._
import sparkdstl.log.runtime.{CountedNames, ProtocolRuntime, ScheduledTimer}
import sparkdstl.log.storage._
import sparkdstl.log.storage.StorageOperation.Create
import sparkdstl.log.transport.{ExecutorLink, FromDriver, MessageCodec, ToDriver}

/** A run with its coordinator, as on a driver, on storage in memory. */
final class BenchedRun(executors: ExecutorLink) extends AutoCloseable {
  private val daemons: ThreadFactory = task => {
    val thread = new Thread(task, "driver-benchmark")
    thread.setDaemon(true)
    thread
  }
  private val timer = new ScheduledTimer(daemons)
  private val continuations = Executors.newFixedThreadPool(2, daemons)
  private val runtime =
    new ProtocolRuntime(timer, new CountedNames, ExecutionContext.fromExecutorService(continuations))

  val options: LogOptions = LogOptions.default
  val runs = new CoordinatedRuns
  private val client =
    new StorageClient(
      new ForgetfulStore(new MemoryObjectStore),
      new Requests(BenchedRun.OneAttempt, runtime, new RequestMetrics, new StorageHistory)
    )

  // As on a driver.
  private val budget = new InlineBudget(math.max(32L * 1024 * 1024, Runtime.getRuntime.maxMemory() / 8))

  val coordinator: RunCoordinator = Await.result(
    RunFactory.begin(
      QueryStorage(BenchedRun.Location, client, client, options.commitTimeoutMs),
      RunSetup(SealLoad.Run, "localhost", "benchmark", 0, options),
      DriverResources(executors, budget, new CommitMetrics)
    ),
    1.minute
  ).coordinator
  runs.begin(coordinator): Unit

  def load(of: DriverLoad): SealLoad = SealLoad(
    of.tasks,
    of.bytesPerStore,
    of.formatVersion == 2,
    options.inlineMaxBatchSize,
    options.inlineMaxSegmentSize
  )

  /** Hands in a message as the driver's endpoint does; returns the answer, and the time in milliseconds. */
  def handIn(executor: String, message: ToDriver): (FromDriver, Double) = {
    val received = MessageCodec.encode(message)
    val began = System.nanoTime()
    val answer = Await.result(runs.answer(executor, coordinator.id, MessageCodec.decodeToDriver(received)), 1.minute)
    MessageCodec.encode(answer): Unit
    val millis = (System.nanoTime() - began) / 1e6
    answer match {
      case _: FromDriver.Accepted | FromDriver.Noted => (answer, millis)
      case other => throw new IllegalStateException(s"the driver answered $other")
    }
  }

  /** Commits the batch; returns the time in milliseconds. */
  def commit(batch: Long, load: SealLoad): Double = {
    val content = load.sparkEntry(batch)
    // Spark's accumulator reports them if there are no checkpoint ids.
    val reported = (0 until load.tasks).map(load.attempt(batch, _))
    val began = System.nanoTime()
    Await.result(coordinator.commit(batch, content, reported), 10.minutes)
    (System.nanoTime() - began) / 1e6
  }

  override def close(): Unit = {
    Await.result(coordinator.close(), 1.minute)
    timer.close()
    continuations.shutdown()
  }
}

object BenchedRun {
  // A hedge would read content that the store has dropped.
  private val OneAttempt = RequestOptions.of(LogOptions.default).copy(policy = RetryPolicy.NoRetry)
  private val Root = new Path("memory:/checkpoint")
  val Location: QueryLocation = QueryLocation(Root, new Path(Root, "dstl"), None)
}

/** Keeps objects in memory, and commit entries without their content. */
private final class ForgetfulStore(memory: ObjectStore) extends ObjectStore {
  override def replacesAtomically: Boolean = memory.replacesAtomically
  override def deletionPageSize: Int = memory.deletionPageSize

  override def begin[A](operation: StorageOperation[A]): Attempt[A] = operation match {
    case Create(path, _) if path.getParent.getName == "commits" =>
      memory.begin(Create(path, Payload(Array.emptyByteArray)))
    case other => memory.begin(other)
  }
}
