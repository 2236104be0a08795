// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.wiring

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.{CommitMetrics, CoordinatedRuns}
import sparkdstl.log.coordinator.attempts.InlineBudget
import sparkdstl.log.coordinator.retention.Deleter
import sparkdstl.log.format.QueryLocation
import sparkdstl.log.read.{DiskCache, EntryFound, EntryPlace, EntryReader, MemoryCache, RangePlace, SharedRanges}
import sparkdstl.log.request.{QueryStorage, RequestMetrics, RequestOptions, Requests, StorageClient, StorageHistory}
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.{ObjectStore, SstCache}
import sparkdstl.log.upload.{MemoryBudget, ObjectDiscarder, UploadMetrics}
import sparkdstl.sim.machines.{ProcessDisk, SimProcess}
import sparkdstl.sim.model.Names
import sparkdstl.sim.world.{Branches, Reach, SimConstants}

/** The objects that all runs in one process share, like the adapter's environment. */
final class ProcessEnvironment(
    val process: SimProcess,
    val objects: ObjectStore,
    val disk: ProcessDisk,
    val constants: SimConstants,
    val reach: Reach
) {
  val options: LogOptions = constants.options
  val location: QueryLocation = QueryLocation(new Path(Names.Root), new Path(Names.Root, "dstl"), None)
  val runtime: ProtocolRuntime = process.runtime

  /** Runs the wiring code within the current event. */
  val inline: ExecutionContext = process.inline
  val runs = new CoordinatedRuns
  val inlineBudget = new InlineBudget(constants.inlineBudget)
  val copies = new DiskCache(disk, 48 * 1024, runtime)
  val kept = new SstCache(disk)
  val entries = new MemoryCache[EntryPlace, EntryFound](constants.cacheBytes, runtime)(_.weight)
  val ranges = new SharedRanges(
    new MemoryCache[RangePlace, Array[Byte]](constants.cacheBytes / 4, runtime)(bytes => Some(bytes.length.toLong)),
    Some(copies),
    runtime
  )
  val memory = new MemoryBudget(options.uploadMaxInFlight)
  val commitMetrics = new CommitMetrics
  val uploadMetrics = new UploadMetrics
  var current: Option[DriverLog] = None
  private val requestMetrics = new RequestMetrics
  private val history = new StorageHistory
  private var unowned = Set.empty[Long]
  private var made = Vector.empty[Requests]
  private var discarders = Vector.empty[ObjectDiscarder]

  /** Deletes an entry while no run is active. */
  def deleteUnowned(batch: Long): Future[Unit] = {
    val own = storage()
    new Deleter(own, new EntryReader(own, constants.fetchLength))
      .deleteUnowned(batch, unowned).map(left => unowned = left)(inline)
  }

  /** Storage for one run. */
  def storage(): QueryStorage = {
    val requests = new Requests(RequestOptions.of(options), runtime, requestMetrics, history)
    made :+= requests
    val client = new StorageClient(objects, requests)
    QueryStorage(location, client, client, options.commitTimeoutMs)
  }

  def discarder(storage: StorageClient): ObjectDiscarder = {
    val discarder = new ObjectDiscarder(storage, runtime, options.commitTimeoutMs, uploadMetrics)
    discarders :+= discarder
    discarder
  }

  /** Resources that are held although no work is under way. */
  def leaks: Vector[String] = Vector(
    "bytes of the inline budget" -> inlineBudget.inUse,
    "bytes of the upload budget" -> memory.inUse,
    "waiters for memory" -> memory.waiters.toLong,
    "coordinated runs" -> runs.all.size.toLong,
    "attempts at requests" -> made.map(_.underWay).sum.toLong,
    "objects to discard" -> discarders.map(_.pending).sum.toLong
  ).collect { case (what, held) if held != 0 => s"${process.name} holds $held $what" }

  /** Notes the branches that only metrics show. */
  def noteReach(): Unit =
    for ((metric, value) <- requestMetrics.all ++ uploadMetrics.all; (ending, probe) <- Branches.ofMetrics)
      if (metric.endsWith(ending) && value() > 0) reach.met(probe)
}
