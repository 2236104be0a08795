// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.worker

import java.util.UUID
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger

import scala.collection.mutable
import scala.concurrent.Future
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.LostObjectException
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.format.Writer
import sparkdstl.log.read.{EntryReader, SegmentReader, WayBack}
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.runtime.Waiting
import sparkdstl.log.transport.{RunId, ToExecutor}
import sparkdstl.log.upload.{DataFiles, LogUploader, MemoryBudget, ObjectDiscarder}
import sparkdstl.log.worker.{RememberedRuns, RunWorker}

import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.util.{RpcUtils, ShutdownHookManager, Utils}
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{Checkpoint, ProcessResources}
import org.apache.spark.sql.execution.streaming.state.dstl.transport.{
  ExecutorEndpoint,
  RemovedExecutors,
  Rpc,
  RpcDriverLink
}

/**
 * A run in this process: its writer, if the driver coordinates the run, and its reader.
 *
 * @param worker None if no driver coordinates the run: then changelogs are plain files
 */
private[dstl] final class WorkedRun(
    val id: RunId,
    val worker: Option[RunWorker],
    val reader: SegmentReader,
    wayBack: WayBack,
    val resources: ProcessResources
) {
  private final val ExplainedObjects = 8
  private val tasks = new AtomicInteger
  // Guarded by this: errors that name the way out, by lost object.
  private val explained = mutable.HashMap.empty[Path, Future[LostObjectException]]

  def waiting: Waiting = resources.waiting

  /** Whether no task writes for the run, no message or upload is pending, and no store of it is loaded. */
  def isIdle: Boolean = tasks.get == 0 && worker.forall(_.isIdle)

  /** The error with the batch to roll back to. All stores wait for one search; after some objects, errors name no batch. */
  def explain(lost: LostObjectException): LostObjectException = {
    val found = synchronized {
      if (explained.size >= ExplainedObjects) explained.getOrElse(lost.file, Future.successful(lost))
      else explained.getOrElseUpdate(lost.file, wayBack.explain(lost))
    }
    waiting.on(found)
  }

  def taskBegins(): Unit = tasks.incrementAndGet(): Unit

  def taskEnds(): Unit = tasks.decrementAndGet(): Unit
}

/**
 * The executors' side of a process: its endpoint, and the runs of its tasks.
 *
 * @param isExecutor whether the process is an executor and nothing else
 */
private[dstl] final class WorkerSide(env: SparkEnv, resources: ProcessResources, isExecutor: Boolean)
    extends AutoCloseable with Logging {
  import WorkerSide._

  private val runs = new RememberedRuns[WorkedRun](RememberedIdleRuns, _.isIdle)

  // Guarded by this; registered with the first run.
  private var endpoint = Option.empty[RpcEndpointRef]

  // Changes that an executor has not uploaded are lost when it exits. Spark has no callback for a decommissioning. When a driver
  // exits, the batch ends anyway.
  private val beforeExit = Option.when(isExecutor) {
    ShutdownHookManager.addShutdownHook(BeforeExecutorStops)(() => uploadAndWait())
  }
  if (isExecutor) watchForDecommissioning()

  /** The run, with a link to its driver that is opened at its first use. */
  def of(checkpoint: Checkpoint, run: UUID): WorkedRun = {
    val id = RunId(checkpoint.root.toString, run)
    runs.of(id)(make(id, checkpoint))
  }

  /** Uploads the waiting chunks of all runs in the background. */
  def uploadNow(): Unit = runs.all.foreach(_.worker.foreach(_.flush()))

  override def close(): Unit = beforeExit.foreach(ShutdownHookManager.removeShutdownHook(_): Unit)

  private def watchForDecommissioning(): Unit = resources.runtime.timer.schedule(DecommissionCheckMillis) { () =>
    if (env.blockManager.decommissioner.nonEmpty) uploadNow()
    watchForDecommissioning()
  }: Unit

  /** An ended upload is reported to the driver at once; then the driver no longer needs the process. */
  private def uploadAndWait(): Unit = {
    uploadNow()
    val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(RemovedExecutors.MaxExitDelayMillis)
    while (runs.all.exists(_.worker.exists(_.isUploading)) && System.nanoTime() < until)
      Thread.sleep(10)
  }

  private def receive(id: RunId, message: ToExecutor): Unit =
    runs.get(id).flatMap(_.worker).foreach(_.receive(message))

  private def make(id: RunId, checkpoint: Checkpoint): WorkedRun = {
    import checkpoint.options
    val storage = resources.storage(checkpoint)
    val worker = driverEndpoint.map { driver =>
      new RunWorker(
        id,
        resources.executorName,
        new RpcDriverLink(driver, ownEndpoint(), Rpc.askTimeout(env)),
        epoch => uploader(id, epoch, storage, options, resources.uploadBudget(options)),
        epoch => uploader(id, epoch, storage, options, resources.snapshotUploads),
        options,
        resources.runtime
      )
    }
    val reader = new SegmentReader(
      storage,
      new EntryReader(
        storage,
        EntryFetchLength,
        resources.diskCache(options).map(_ -> id.run),
        batch => worker.flatMap(_.entryLength(batch))
      ),
      resources.entryCache(options),
      resources.sharedRanges(options),
      id.run
    )
    new WorkedRun(id, worker, reader, new WayBack(storage), resources)
  }

  private def uploader(
      id: RunId,
      epoch: Long,
      storage: QueryStorage,
      options: LogOptions,
      memory: MemoryBudget
  ): LogUploader = {
    // A process can open a second uploader for a run, whose file numbers begin at one again.
    val instance = resources.runtime.random.nextUuid().toString.take(8)
    val writer = Writer(id.run, epoch, Utils.localCanonicalHostName(), resources.application)
    new LogUploader(
      FailPoints.ofTests.fold(storage.log)(_.beforeUploads(storage)),
      storage.location.base,
      new DataFiles(writer, resources.executorName, instance),
      memory,
      new ObjectDiscarder(storage.log, resources.runtime, options.commitTimeoutMs, resources.uploadMetrics),
      options,
      resources.runtime,
      resources.uploadMetrics
    )
  }

  private def ownEndpoint(): RpcEndpointRef = synchronized {
    val made = endpoint.getOrElse(env.rpcEnv.setupEndpoint(Rpc.ExecutorName, new ExecutorEndpoint(env.rpcEnv, receive)))
    endpoint = Some(made)
    made
  }

  /** The driver's endpoint, if its process has used the log. */
  private def driverEndpoint: Option[RpcEndpointRef] =
    if (env == null) None
    else
      try Some(RpcUtils.makeDriverRef(Rpc.DriverName, env.conf, env.rpcEnv))
      catch { case NonFatal(e) if Rpc.meansNoEndpoint(e) => None }
}

private object WorkerSide {

  /** Runs before Spark's hook, which has the default priority and ends an executor's threads and RPC. */
  private val BeforeExecutorStops = ShutdownHookManager.DEFAULT_SHUTDOWN_PRIORITY + 10
  private val DecommissionCheckMillis = 500L

  /** Bounded, because each scan of state is a run. */
  private val RememberedIdleRuns = 64

  /** Length of the first fetch of a commit entry: most entries are shorter. */
  private val EntryFetchLength = 4 * 1024 * 1024
}
