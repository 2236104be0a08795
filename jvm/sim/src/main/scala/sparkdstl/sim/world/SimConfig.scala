package sparkdstl.sim.world

/** How a storage publishes. */
sealed abstract class StorageKind(
    val createsExclusively: Boolean,
    val replacesAtomically: Boolean,
    val renames: Boolean
) extends Product
    with Serializable

object StorageKind {

  /** S3 with conditional creation: an object is there when the write ends. */
  case object Direct extends StorageKind(true, true, false)

  /** S3 whose server ignores the condition. */
  case object DirectUnconditional extends StorageKind(false, true, false)

  /** HDFS: a temporary file is renamed, over another one if asked to, in one step. */
  case object AtomicRename extends StorageKind(true, true, true)

  /** ABFS: renaming over another file deletes that first. */
  case object DeleteThenRename extends StorageKind(true, false, true)

  val all: Vector[StorageKind] = Vector(Direct, DirectUnconditional, AtomicRename, DeleteThenRename)
}

/**
 * One world, as its seed has drawn it.
 *
 * @param firstBatch
 *   up to which stock Spark has written the checkpoint
 * @param batches
 *   that are committed before nothing goes wrong any more
 * @param shortRuns
 *   whether the query is one that commits a batch or two per run
 * @param logsSnapshots
 *   whether snapshots go to the log; else they are files, as with stock Spark's provider name
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
    constants: SimConstants,
    rates: Map[FaultKind, Double]
) {
  def without(kind: FaultKind): SimConfig = copy(rates = rates - kind)

  /**
   * How many versions pass at most from one snapshot to the next once nothing goes wrong. With runs of one batch it is the third
   * run that makes one.
   */
  def versionsPerSnapshot: Long = {
    val stores = partitions * storesPerTask
    // Where an entry takes one carried snapshot, tasks that seal first go before others.
    val turns = if (constants.limits.carriedBytes < SimConstants.Usual.limits.carriedBytes) 3 * stores else stores
    (if (shortRuns) 5L else constants.versionsPerSnapshot) + 4 + turns
  }

  /**
   * Whether a batch's change to a store cannot be replayed, so that its task makes a snapshot as part of the commit: like
   * one that adds a column family, which all attempts do.
   */
  def forcesSnapshot(batch: Long, store: String): Boolean = (seed, batch, store).hashCode % 8 == 0

  override def toString: String =
    s"seed $seed: $storage, checkpoint format $checkpointFormat, $partitions partition(s) of $storesPerTask store(s), " +
      s"$executors executor(s), $batchesToRetain batches retained, $batches batches from $firstBatch on" +
      (if (shortRuns) ", short runs" else "") + (if (logsSnapshots) "" else ", plain snapshots") +
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
      SimConstants.draw(chance.fork("constants")),
      rates.toMap
    )
  }
}
