package sparkdstl.log.read

import java.util.concurrent.atomic.LongAdder

/** Counts what a process reads from the log to rebuild stores. Thread-safe. */
final class ReplayMetrics {
  private val segments = new LongAdder
  private val bytes = new LongAdder

  /** A segment is about to be replayed. */
  def opened(): Unit = segments.increment()

  /** So much of one was read. */
  def read(count: Long): Unit = bytes.add(count)

  /** Segments so far. */
  def segmentCount: Long = segments.sum

  /** Bytes so far. */
  def byteCount: Long = bytes.sum
}
