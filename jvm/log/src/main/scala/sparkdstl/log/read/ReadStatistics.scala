package sparkdstl.log.read

import java.util.concurrent.atomic.LongAdder

/** What reading the log has cost so far. Thread-safe; only grows. */
final class ReadStatistics {
  private val fetchCount = new LongAdder
  private val fetchedByteCount = new LongAdder
  private val hitCount = new LongAdder

  def fetched(bytes: Long): Unit = {
    fetchCount.increment()
    fetchedByteCount.add(bytes)
  }

  def hit(): Unit = hitCount.increment()

  /** Read requests sent to storage for log files. */
  def fetches: Long = fetchCount.sum()

  /** Bytes they returned. */
  def fetchedBytes: Long = fetchedByteCount.sum()

  /** Times a log file was wanted and was in memory, or already on its way. */
  def hits: Long = hitCount.sum()
}
