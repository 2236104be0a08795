// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

/**
 * A network line: the content of all senders moves at a steady rate, one piece after another. The caller provides the
 * moments of `System.nanoTime`.
 *
 * @param bytesPerSecond 0 for no limit
 * @param now            the moment from which it is free
 */
final class Line(bytesPerSecond: Long, now: Long) {
  // Guarded by this.
  private var free = now

  /** Occupies the line for so many bytes; returns the moment of the last one's arrival. */
  def carry(bytes: Long, now: Long): Long =
    if (bytesPerSecond <= 0) now
    else
      synchronized {
        // A late caller catches up by a few milliseconds, as with the buffers of a network.
        free = math.max(free, now - Line.BufferedNanos) + math.round(bytes * 1e9 / bytesPerSecond)
        free
      }
}

object Line {
  private[bench] val BufferedNanos = 5000000L
}
