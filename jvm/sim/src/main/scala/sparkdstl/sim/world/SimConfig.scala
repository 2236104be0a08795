// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.world

/** How a storage publishes objects. */
sealed abstract class StorageKind(
    val createsExclusively: Boolean,
    val replacesAtomically: Boolean,
    val renames: Boolean
) extends Product
    with Serializable

object StorageKind {

  /** S3 with conditional creation: an object exists when the write ends. */
  case object Direct extends StorageKind(true, true, false)

  /** S3 whose server ignores the condition. */
  case object DirectUnconditional extends StorageKind(false, true, false)

  /** HDFS: a rename publishes a temporary file, and replaces an existing one in one step if requested. */
  case object AtomicRename extends StorageKind(true, true, true)

  /** ABFS: a rename over another file deletes that file first. */
  case object DeleteThenRename extends StorageKind(true, false, true)

  val all: Vector[StorageKind] = Vector(Direct, DirectUnconditional, AtomicRename, DeleteThenRename)
}

/**
 * The configuration of one world, drawn from its seed.
 *
 * @param firstBatch the first batch with the log; stock Spark has written the batches before it
 * @param batches the number of batches that are committed before the faults end
 * @param shortRuns whether the query commits one or two batches per run
 * @param overlapsOffsets whether tasks may run while the offsets of their batch are written
 * @param logsSnapshots whether snapshots are in the log; if not they are files, as with stock Spark's provider name
 */
final case class SimConfig(
    seed: Long,
    storage: StorageKind,
    checkpointFormat: Int,
    partitions: Int,
    storesPerTask: Int,
    executors: Int,
    batchesToRetain: Int,
    firstBatch: Long,
    batches: Int,
    shortRuns: Boolean,
    logsSnapshots: Boolean,
    overlapsOffsets: Boolean,
    constants: SimConstants,
    rates: Map[FaultKind, Double]
) {
  def without(kind: FaultKind): SimConfig = copy(rates = rates - kind)

  /**
   * The maximal number of versions from one snapshot to the next without faults. With runs of one batch the third
   * run makes a snapshot.
   */
  def versionsPerSnapshot: Long = {
    val stores = partitions * storesPerTask
    // If an entry has room for one carried snapshot only, the first seal gets it and other stores wait.
    val turns = if (constants.limits.carriedBytes < SimConstants.Usual.limits.carriedBytes) 3 * stores else stores
    (if (shortRuns) 5L else constants.versionsPerSnapshot) + 4 + turns
  }

  /**
   * Whether a batch's change to a store cannot be replayed, so that each attempt makes a snapshot as part of the commit, like
   * a change that adds a column family.
   */
  def forcesSnapshot(batch: Long, store: String): Boolean = (seed, batch, store).hashCode % 8 == 0

  override def toString: String =
    s"seed $seed: $storage, checkpoint format $checkpointFormat, $partitions partition(s) of $storesPerTask store(s), " +
      s"$executors executor(s), $batchesToRetain batches retained, $batches batches from $firstBatch on" +
      (if (shortRuns) ", short runs" else "") + (if (logsSnapshots) "" else ", plain snapshots") +
      (if (overlapsOffsets) "" else ", offsets first") +
      (if (constants == SimConstants.Usual) "" else s", $constants") + ", faults: " +
      (if (rates.isEmpty) "none"
       else FaultKind.all.collect { case k if rates.contains(k) => f"$k ${rates(k)}%.3f" }.mkString(", "))
}

object SimConfig {

  /** Some worlds are calm, some wild; most have a few kinds of faults. */
  def draw(seed: Long): SimConfig = {
    val chance = new Chance(seed * 0x9e3779b97f4a7c15L).fork("config")
    val share = chance.pick(Vector(0.0, 0.1, 0.2, 0.4, 0.7, 1.0))
    val wildness = chance.pick(Vector(0.2, 0.5, 1.0, 1.0, 1.5))
    val rates = FaultKind.all.filter(_ => chance.happens(share)).map(k => k -> k.rate * wildness)
    SimConfig(
      seed,
      chance.pick(StorageKind.all),
      chance.between(1, 2),
      chance.between(1, 3),
      chance.between(1, 2),
      chance.between(1, 3),
      chance.between(1, 6),
      if (chance.happens(0.5)) 0 else chance.pick(Vector(1, 7, 9, 94, 98, 993, 9998)).toLong,
      chance.between(4, 14),
      chance.happens(0.2),
      chance.happens(0.8),
      chance.fork("offsets").happens(0.8),
      SimConstants.draw(chance.fork("constants")),
      rates.toMap
    )
  }
}
