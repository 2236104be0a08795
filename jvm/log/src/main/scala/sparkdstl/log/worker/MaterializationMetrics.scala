package sparkdstl.log.worker

import java.util.concurrent.atomic.LongAdder

/** Counts the snapshots that a process makes. Thread-safe. */
final class MaterializationMetrics {
  private val begun = new LongAdder
  private val held = new LongAdder
  private val ready = new LongAdder
  private val lost = new LongAdder
  private val failures = new LongAdder
  private val bytes = new LongAdder
  @volatile private var last = (0L, 0L)

  def started(): Unit = begun.increment()

  /**
   * A commit entry holds one.
   *
   * @param uploadedBytes what was uploaded for it
   * @param millis        from its beginning on
   */
  def completed(uploadedBytes: Long, millis: Long): Unit = {
    held.increment()
    bytes.add(uploadedBytes)
    last = (uploadedBytes, millis)
  }

  /** One is uploaded, and waits for a seal of its store. */
  def uploaded(): Unit = ready.increment()

  /** No commit entry will hold it, because the store's local state is another one now. */
  def abandoned(): Unit = lost.increment()

  def failed(): Unit = failures.increment()

  def startedCount: Long = begun.sum
  def completedCount: Long = held.sum
  def uploadedCount: Long = ready.sum
  def abandonedCount: Long = lost.sum
  def failedCount: Long = failures.sum
  def uploadedBytes: Long = bytes.sum

  /** Of the newest that was completed: bytes uploaded, milliseconds. */
  def newest: (Long, Long) = last
}
