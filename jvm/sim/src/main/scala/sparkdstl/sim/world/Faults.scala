// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.world

/**
 * The kinds of faults. `rate` is the probability per occasion in a wild world.
 *
 * @param rate the probability per request, message, task or tick of the director
 */
sealed abstract class FaultKind(val rate: Double) extends Product with Serializable

object FaultKind {
  // Storage, per request.
  case object SlowRequest extends FaultKind(0.08)
  case object RequestFails extends FaultKind(0.1)
  case object RefusedForGood extends FaultKind(0.01)
  case object HangingRequest extends FaultKind(0.02)
  case object LostAnswer extends FaultKind(0.1)
  case object LatePut extends FaultKind(0.1)
  case object RepeatedInside extends FaultKind(0.1)
  case object ReadFails extends FaultKind(0.1)
  case object HalfDelete extends FaultKind(0.2)
  case object LateDelete extends FaultKind(0.1)
  case object KilledAtRequest extends FaultKind(0.004)

  // Local disks, per write.
  case object LocalDiskFull extends FaultKind(0.1)

  // Network, per message.
  case object SlowMessage extends FaultKind(0.1)
  case object LostRequest extends FaultKind(0.1)
  case object LostReply extends FaultKind(0.1)

  // Spark's side, per task.
  case object TaskFails extends FaultKind(0.1)
  case object StoreMoves extends FaultKind(0.2)
  case object FailsBeforeSeal extends FaultKind(0.05)
  case object FailsAfterSeal extends FaultKind(0.1)
  case object Speculation extends FaultKind(0.3)
  case object KilledTask extends FaultKind(0.1)

  // Per batch.
  case object Recompute extends FaultKind(0.2)
  case object TwoJobs extends FaultKind(0.25)
  case object LatePurge extends FaultKind(0.5)
  case object SlowTrigger extends FaultKind(0.02)

  // Per tick of the director.
  case object Partition extends FaultKind(0.05)
  case object ExecutorLost extends FaultKind(0.06)
  case object ExecutorPaused extends FaultKind(0.05)
  case object DriverCrash extends FaultKind(0.04)
  case object DriverPause extends FaultKind(0.05)
  case object SecondDriver extends FaultKind(0.04)
  case object LongPause extends FaultKind(0.03)
  case object QueryStop extends FaultKind(0.04)
  case object ClockJump extends FaultKind(0.05)
  case object ClockStands extends FaultKind(0.5)
  case object LocalFileDamaged extends FaultKind(0.3)
  case object EntryDamaged extends FaultKind(0.06)
  case object DataFileDamaged extends FaultKind(0.06)
  case object SnapshotLost extends FaultKind(0.1)
  case object NewestDeleted extends FaultKind(0.02)
  case object ReaderPins extends FaultKind(0.1)

  // Per process.
  case object ClockDrift extends FaultKind(0.3)

  // Per restart.
  case object SinkSkips extends FaultKind(0.5)
  case object Rollback extends FaultKind(0.3)
  case object PurgeAllCommits extends FaultKind(0.2)
  case object StockBatches extends FaultKind(0.25)

  val all: Vector[FaultKind] = Vector(
    SlowRequest,
    RequestFails,
    RefusedForGood,
    HangingRequest,
    LostAnswer,
    LatePut,
    RepeatedInside,
    ReadFails,
    HalfDelete,
    LateDelete,
    KilledAtRequest,
    LocalDiskFull,
    SlowMessage,
    LostRequest,
    LostReply,
    TaskFails,
    StoreMoves,
    FailsBeforeSeal,
    FailsAfterSeal,
    Speculation,
    KilledTask,
    Recompute,
    TwoJobs,
    LatePurge,
    SlowTrigger,
    Partition,
    ExecutorLost,
    ExecutorPaused,
    DriverCrash,
    DriverPause,
    SecondDriver,
    LongPause,
    QueryStop,
    ClockJump,
    ClockStands,
    ClockDrift,
    LocalFileDamaged,
    EntryDamaged,
    DataFileDamaged,
    SnapshotLost,
    NewestDeleted,
    ReaderPins,
    SinkSkips,
    Rollback,
    PurgeAllCommits,
    StockBatches
  )
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
