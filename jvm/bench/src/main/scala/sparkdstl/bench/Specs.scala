// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

/** The specification of every process that runs a query. */
trait QuerySpec {

  /** Of [[Workload]]. */
  def workload: String
  def partitions: Int

  /** A separate directory, for the checkpoints. */
  def root: String
  def output: String

  /** Further SQL configurations, for all contenders. */
  def confs: Map[String, String]

  def query: Workload = Workload.named(workload)
}

/** Where storage is, and its delays: a local disk, by Spark's own file system, if `None`. */
final case class StorageSpec(root: String, delays: Option[RequestDelays])

/**
 * One workload on a number of partitions, by some contenders.
 *
 * @param warmup batches of each contender that are not counted
 * @param rounds batches of each contender that are
 * @param turn   batches that a contender runs before it is another's turn
 */
final case class CellSpec(
    workload: String,
    partitions: Int,
    contenders: Seq[String],
    root: String,
    output: String,
    delays: Option[RequestDelays],
    warmup: Int,
    rounds: Int,
    turn: Int,
    confs: Map[String, String]
) extends QuerySpec

/**
 * One contender's query, batch after batch, on storage without delays.
 *
 * @param periodMs    from the start of one batch to that of the next, unless a batch takes longer
 * @param sampleEvery number of batches between two counts of what is stored
 * @param heapEvery   number of samples between two measurements of the heap
 */
final case class GrowthSpec(
    workload: String,
    partitions: Int,
    contender: String,
    root: String,
    output: String,
    batches: Int,
    periodMs: Long,
    sampleEvery: Int,
    heapEvery: Int,
    confs: Map[String, String]
) extends QuerySpec

/**
 * One process of a query that is restarted.
 *
 * @param phase         `prepare`, `recover` or `lose`
 * @param delays        of the storage in the last two
 * @param stores        of all partitions
 * @param batchesBefore batches before the newest snapshots
 * @param ticksBefore   input of each of these; all others take one tick
 * @param batchesSince  batches after that
 * @param batchesWarm   batches in the process that then loses an executor
 * @param warmSession   whether the session has restarted a copy of the checkpoint before
 * @param asConfigured  whether the log takes snapshots by its own defaults in the batches since; else it takes none
 */
final case class RecoverySpec(
    phase: String,
    workload: String,
    partitions: Int,
    contender: String,
    root: String,
    output: String,
    delays: Option[RequestDelays],
    stores: Int,
    batchesBefore: Int,
    ticksBefore: Int,
    batchesSince: Int,
    batchesWarm: Int,
    warmSession: Boolean,
    asConfigured: Boolean,
    confs: Map[String, String]
) extends QuerySpec {

  /** Input of a batch. */
  def ticks(batch: Int): Range = {
    val first = math.min(batch, batchesBefore) * ticksBefore + math.max(0, batch - batchesBefore)
    first until first + (if (batch < batchesBefore) ticksBefore else 1)
  }
}

/** Loads on a driver without Spark jobs, of one kind: `direct`, `endpoint`, `memory` or `snapshots`. */
final case class DriverSpec(output: String, part: String, loads: Seq[DriverLoad])

/**
 * What the tasks of a batch hand to the driver.
 *
 * @param batches that are committed and not deleted
 */
final case class DriverLoad(tasks: Int, bytesPerStore: Int, formatVersion: Int, batches: Int)
