package sparkdstl.bench

/**
 * A line on which content moves at a steady rate, one piece after another, whoever sends it. Moments are those of
 * `System.nanoTime`, and come from the caller.
 *
 * @param bytesPerSecond 0 for no limit
 * @param now            when it is first free
 */
final class Line(bytesPerSecond: Long, now: Long) {
  // Guarded by this.
  private var free = now

  /** Takes the line for so many bytes; the moment at which the last of them has come through. */
  def carry(bytes: Long, now: Long): Long =
    if (bytesPerSecond <= 0) now
    else
      synchronized {
        // A sleep that was too long, or a reader that was busy, is made up for, as buffers on the way do.
        free = math.max(free, now - Line.BufferedNanos) + math.round(bytes * 1e9 / bytesPerSecond)
        free
      }
}

object Line {
  private[bench] val BufferedNanos = 5000000L
}
