package org.apache.spark.sql.execution.streaming.state.dstl.worker

import java.util.UUID
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.failpoints.Stops
import sparkdstl.log.format.Writer
import sparkdstl.log.read.{EntryReader, SegmentReader}
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.transport.{RunId, ToExecutor}
import sparkdstl.log.upload.{DataFiles, LogUploader, MemoryBudget, ObjectDiscarder, UploaderOptions}
import sparkdstl.log.worker.{RememberedRuns, RunWorker}

import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.util.{RpcUtils, ShutdownHookManager, Utils}
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.Waiting
import org.apache.spark.sql.execution.streaming.state.dstl.rpc.{ExecutorDoor, Rpc, RpcDriverLink}

/**
 * A run as this process works for it: what it writes with, if the driver coordinates it, and what it reads with.
 *
 * @param worker None where nobody coordinates the run: changelogs are plain files then
 */
private[dstl] final class WorkedRun(
    val id: RunId,
    val worker: Option[RunWorker],
    val reader: SegmentReader,
    val environment: DstlEnvironment
) {
  private val tasks = new AtomicInteger

  def waiting: Waiting = environment.waiting

  /** Whether no task writes for the run, nothing of it is on its way, and no store of it is loaded. */
  def isIdle: Boolean = tasks.get == 0 && worker.forall(_.isIdle)

  def taskBegins(): Unit = tasks.incrementAndGet(): Unit

  def taskEnds(): Unit = tasks.decrementAndGet(): Unit
}

private[dstl] object WorkedRun {

  /** Whether what tasks change goes to the log, as far as the driver has been asked. */
  def isLogged(run: Option[WorkedRun], options: LogOptions): Boolean =
    options.logsChanges && run.exists(_.worker.exists(_.isCoordinated))
}

/** The executors' side of a process: its door, and the runs that its tasks work for. */
private[dstl] final class WorkerSide(env: SparkEnv, environment: DstlEnvironment) extends AutoCloseable with Logging {
  import WorkerSide._

  private val runs = new RememberedRuns[WorkedRun](RememberedIdleRuns, _.isIdle)
  private lazy val door: RpcEndpointRef =
    env.rpcEnv.setupEndpoint(Rpc.ExecutorEndpoint, new ExecutorDoor(env.rpcEnv, receive))

  // An executor that goes takes along what it has not uploaded. Spark tells nobody that it decommissions one. A driver
  // that goes takes the batch along as well.
  private val isExecutor = env != null && environment.driver.isEmpty
  private val beforeExit = Option.when(isExecutor) {
    ShutdownHookManager.addShutdownHook(BeforeExecutorStops)(() => uploadAndWait())
  }
  if (isExecutor) watchForDecommissioning()

  /** The run, with the way to its driver. Asks the driver when it is first used. */
  def of(root: Path, run: UUID, configuration: Configuration, options: LogOptions): WorkedRun = {
    val id = RunId(root.toString, run)
    runs.of(id)(make(id, root, configuration, options))
  }

  /** Uploads what waits, of all runs. Nobody waits for it. */
  def uploadNow(): Unit = runs.all.foreach(_.worker.foreach(_.flush()))

  override def close(): Unit = beforeExit.foreach(ShutdownHookManager.removeShutdownHook(_): Unit)

  private def watchForDecommissioning(): Unit = environment.runtime.timer.schedule(DecommissionCheckMillis) { () =>
    if (env.blockManager.decommissioner.nonEmpty) uploadNow()
    watchForDecommissioning()
  }: Unit

  /** The driver is told of each upload as it ends, and needs the process no longer then. */
  private def uploadAndWait(): Unit = {
    uploadNow()
    val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(MaxExitDelayMillis)
    while (runs.all.exists(_.worker.exists(_.isUploading)) && System.nanoTime() < until)
      Thread.sleep(10)
  }

  private def receive(id: RunId, message: ToExecutor): Unit =
    runs.get(id).flatMap(_.worker).foreach(_.receive(message))

  private def make(id: RunId, root: Path, configuration: Configuration, options: LogOptions): WorkedRun = {
    val location = DstlEnvironment.location(root, configuration, options)
    val storage = environment.storage(location, configuration, options)
    val reader = new SegmentReader(
      storage,
      new EntryReader(storage, EntryFetchLength, environment.diskCache(options).map(_ -> id.run)),
      environment.entryCache(options),
      environment.sharedRanges(options),
      id.run
    )
    val worker = driverDoor.map { driver =>
      new RunWorker(
        id,
        environment.executorName,
        new RpcDriverLink(driver, door, Rpc.askTimeout(env)),
        epoch => uploader(id, epoch, storage, options, environment.uploadBudget(options)),
        epoch => uploader(id, epoch, storage, options, environment.snapshotUploads),
        options,
        environment.runtime
      )
    }
    new WorkedRun(id, worker, reader, environment)
  }

  private def uploader(
      id: RunId,
      epoch: Long,
      storage: QueryStorage,
      options: LogOptions,
      memory: MemoryBudget
  ): LogUploader = {
    // A process may come to upload for a run again after it has closed its first uploader, and count from one again.
    val instance = environment.runtime.random.nextUuid().toString.take(8)
    val writer = Writer(id.run, epoch, Utils.localCanonicalHostName(), environment.application)
    new LogUploader(
      Stops.beforeUploads(storage),
      storage.location.base,
      new DataFiles(writer, environment.executorName, instance),
      memory,
      new ObjectDiscarder(storage.log, environment.runtime, options.commitTimeoutMs, environment.uploadMetrics),
      UploaderOptions.of(options),
      environment.runtime,
      environment.uploadMetrics
    )
  }

  /** The driver's door, if a query there uses the log. */
  private def driverDoor: Option[RpcEndpointRef] =
    if (env == null) None
    else
      try Some(RpcUtils.makeDriverRef(Rpc.DriverEndpoint, env.conf, env.rpcEnv))
      catch { case NonFatal(e) if Rpc.meansNoEndpoint(e) => None }
}

private object WorkerSide {

  /** An executor's own hook, which ends its threads and its RPC, has the default. */
  private val BeforeExecutorStops = ShutdownHookManager.DEFAULT_SHUTDOWN_PRIORITY + 10
  private val DecommissionCheckMillis = 500L

  /** How long a process that is told to exit stays for the sake of uploads. */
  private val MaxExitDelayMillis = 10000L

  /** Each scan of state is a run. */
  private val RememberedIdleRuns = 64

  /** What is fetched of a commit entry at once: most are shorter, and come whole. */
  private val EntryFetchLength = 4 * 1024 * 1024
}
