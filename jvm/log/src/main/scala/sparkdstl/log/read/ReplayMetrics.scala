package sparkdstl.log.read

import java.util.concurrent.atomic.LongAdder

/** Counts what a process reads from the log to rebuild stores. Thread-safe. */
final class ReplayMetrics {
  private val segments = new LongAdder
  private val bytes = new LongAdder
  private val records = new LongAdder
  private val snapshots = new LongAdder
  private val unusable = new LongAdder

  /** A segment is about to be replayed. */
  def opened(): Unit = segments.increment()

  /** So much of one was read. */
  def read(count: Long): Unit = bytes.add(count)

  /** So many change records were applied to a store that was being loaded. */
  def replayed(count: Long): Unit = records.add(count)

  /** A snapshot was loaded. */
  def loadedSnapshot(): Unit = snapshots.increment()

  /** One could not be: it is damaged, or something of it is missing, or storage did not answer. */
  def skippedSnapshot(): Unit = unusable.increment()

  /** Snapshots loaded so far. */
  def loadedSnapshots: Long = snapshots.sum

  /** Snapshots that could not be loaded, so far. */
  def unusableSnapshots: Long = unusable.sum

  /** Segments so far. */
  def segmentCount: Long = segments.sum

  /** Bytes so far. */
  def byteCount: Long = bytes.sum

  /** Change records so far. */
  def recordCount: Long = records.sum
}
