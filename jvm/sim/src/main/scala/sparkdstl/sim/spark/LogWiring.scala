package sparkdstl.sim.spark

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.SegmentKey
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.ObjectStore
import sparkdstl.log.transport.{DriverLink, ExecutorLink, FromDriver, RunId, ToDriver, ToExecutor}
import sparkdstl.sim.model.SnapshotPiece
import sparkdstl.sim.world.ProcessDisk

/**
 * What a process gives to the log's classes that run in it.
 *
 * @param inline
 *   where what only wires them together goes on
 */
final class ProcessContext(
    val name: String,
    val runtime: ProtocolRuntime,
    val inline: ExecutionContext,
    val storage: ObjectStore,
    val disk: ProcessDisk
)

/** Puts the log's classes, or something that stands for them, into the world. One for each world. */
trait LogWiring {
  def driver(context: ProcessContext, run: RunId, executors: ExecutorLink): DriverLog

  /** @param drop is told which local stores must not be built upon; those of one attempt, or whoever left them */
  def executor(
      context: ProcessContext,
      executor: String,
      run: RunId,
      driver: DriverLink,
      drop: (Option[Long], Seq[String]) => Unit
  ): ExecutorLog
}

/** A run of a query on its driver, as Spark's side uses the log. */
trait DriverLog {
  def open(): Future[Unit]

  def handle(executor: String, message: ToDriver): Future[FromDriver]

  /**
   * Closes `commits/<batch>`. Fails where Spark's stream would throw.
   *
   * @param reported
   *   attempts whose results Spark has taken for the batch, in the order in which it did
   */
  def commit(batch: Long, sparkContent: Array[Byte], reported: Seq[Long]): Future[Unit]

  /** The batches whose entries Spark sees. */
  def batches(): Future[Seq[Long]]

  /** The two lines that Spark reads of an entry. */
  def readEntry(batch: Long): Future[Option[Array[Byte]]]

  /** Spark, or a tool, asks for the deletion of an entry; also after the run has ended. */
  def delete(batch: Long): Future[Unit]

  def executorLost(executor: String): Unit

  /** The query has ended, but the process goes on. */
  def close(): Unit
}

/** What a task has written for one store. */
final case class WrittenSegment(key: SegmentKey, base: Option[Long], bytes: Array[Byte])

/** A run's side on an executor. */
trait ExecutorLog {

  /** Seals all that an attempt has written; fails if the task must. */
  def seal(attempt: Long, batch: Long, partitions: Int, segments: Vector[WrittenSegment]): Future[Unit]

  /** The attempt ends without success after it has sealed, or may have. Returns at once. */
  def withdraw(attempt: Long, batch: Long): Unit

  /** What a segment holds, in the log or as a plain file; None if there is none. */
  def read(key: SegmentKey): Future[Option[Array[Byte]]]

  /** Version and checkpoint id of a store's snapshots in the log. */
  def snapshots(storeDirectory: String): Future[Seq[(Long, Option[String])]]

  /** Whether it takes snapshots that are not part of a commit. */
  def takesSnapshots: Boolean

  /**
   * Puts a snapshot of a store's local state into the log, with later seals of the store. Completes when it is uploaded.
   *
   * @param files
   *   what it consists of, in order; as long as one does not change it keeps its name
   */
  def snapshot(key: SegmentKey, files: Vector[SnapshotPiece]): Future[Unit]

  /** What a snapshot in the log consists of; None if it is not there. Fails if it cannot be read. */
  def readSnapshot(key: SegmentKey): Future[Option[Vector[Array[Byte]]]]

  /** Spark's retention needs nothing of the store below this version. */
  def release(storeDirectory: String, lowest: Long): Unit

  def handle(message: ToExecutor): Future[Unit]

  def close(): Unit
}

object ExecutorLog {

  /** Spark's own rule: the snapshot from which the oldest of so many versions is rebuilt, counted from the newest snapshot. */
  def base(snapshots: Seq[Long], retain: Int): Option[Long] =
    snapshots.filter(_ <= snapshots.max - retain + 1).maxOption
}
