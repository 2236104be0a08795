// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.world

/** The kinds of faults. */
object FaultKind extends Enumeration {

  /** @param rate the probability per occasion in a wild world: per request, message, task or tick of the director */
  final class Kind(val rate: Double) extends Val

  // Storage, per request.
  val SlowRequest = new Kind(0.08)
  val RequestFails = new Kind(0.1)
  val RefusedForGood = new Kind(0.01)
  val HangingRequest = new Kind(0.02)
  val LostAnswer = new Kind(0.1)
  val LatePut = new Kind(0.1)
  val RepeatedInside = new Kind(0.1)
  val ReadFails = new Kind(0.1)
  val HalfDelete = new Kind(0.2)
  val LateDelete = new Kind(0.1)
  val KilledAtRequest = new Kind(0.004)

  // Local disks, per write.
  val LocalDiskFull = new Kind(0.1)

  // Network, per message.
  val SlowMessage = new Kind(0.1)
  val LostRequest = new Kind(0.1)
  val LostReply = new Kind(0.1)

  // Spark's side, per task.
  val TaskFails = new Kind(0.1)
  val StoreMoves = new Kind(0.2)
  val FailsBeforeSeal = new Kind(0.05)
  val FailsAfterSeal = new Kind(0.1)
  val Speculation = new Kind(0.3)
  val KilledTask = new Kind(0.1)

  // Per batch.
  val Recompute = new Kind(0.2)
  val TwoJobs = new Kind(0.25)
  val LatePurge = new Kind(0.5)
  val SlowTrigger = new Kind(0.02)

  // Per tick of the director.
  val Partition = new Kind(0.05)
  val ExecutorLost = new Kind(0.06)
  val ExecutorPaused = new Kind(0.05)
  val DriverCrash = new Kind(0.04)
  val DriverPause = new Kind(0.05)
  val SecondDriver = new Kind(0.04)
  val LongPause = new Kind(0.03)
  val QueryStop = new Kind(0.04)
  val ClockJump = new Kind(0.05)
  val ClockStands = new Kind(0.5)
  val ClockDrift = new Kind(0.3) // per process
  val LocalFileDamaged = new Kind(0.3)
  val EntryDamaged = new Kind(0.06)
  val DataFileDamaged = new Kind(0.06)
  val SnapshotLost = new Kind(0.1)
  val NewestDeleted = new Kind(0.02)
  val ReaderPins = new Kind(0.1)

  // Per restart.
  val SinkSkips = new Kind(0.5)
  val Rollback = new Kind(0.3)
  val PurgeAllCommits = new Kind(0.2)
  val StockBatches = new Kind(0.25)

  val all: Vector[FaultKind] = values.iterator.collect { case kind: Kind => kind }.toVector
}

/** The rate of each fault in one world. After [[calmDown]] only faults that merely delay a run remain. */
final class Faults(rates: Map[FaultKind, Double], reach: Reach) {
  private val byKind = new java.util.IdentityHashMap[FaultKind, Double]
  rates.foreach { case (kind, rate) => byKind.put(kind, rate): Unit }
  private var left = FaultKind.all.toSet

  def apply(kind: FaultKind): Double = if (byKind.containsKey(kind) && left(kind)) byKind.get(kind) else 0.0

  /** Whether the fault strikes on this occasion. */
  def strikes(kind: FaultKind, chance: Chance): Boolean = {
    val happens = chance.happens(apply(kind))
    if (happens) reach.met(kind)
    happens
  }

  /** Milliseconds around a median, or many times that if the fault strikes. */
  def millis(kind: FaultKind, median: Double, chance: Chance): Double =
    if (strikes(kind, chance)) chance.millis(median) * chance.slowness() else chance.millis(median)

  /** Ends all faults except these. */
  def calmDown(leave: Set[FaultKind]): Unit = left = left.intersect(leave)

  /** Whether any of these may still strike. */
  def mayStrike(kinds: Set[FaultKind]): Boolean = kinds.exists(apply(_) > 0)
}

object Faults {

  /** Faults that give tasks several attempts, of which one wins. */
  val OfAttempts: Set[FaultKind] = Set(FaultKind.Speculation, FaultKind.Recompute)

  /** Faults of deletions, which the log retries. */
  val OfDeletions: Set[FaultKind] = Set(FaultKind.HalfDelete, FaultKind.LateDelete)

  /** Faults of messages, which the log repeats. */
  val OfMessages: Set[FaultKind] = Set(FaultKind.LostRequest, FaultKind.LostReply)
}
