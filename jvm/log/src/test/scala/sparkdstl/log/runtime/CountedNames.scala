package sparkdstl.log.runtime

import java.util.UUID
import java.util.concurrent.atomic.AtomicLong

/** Chance that is always in the middle, and gives names that are counted. */
final class CountedNames extends RandomSource {
  private val count = new AtomicLong

  override def nextDouble(): Double = 0.5

  override def nextUuid(): UUID = new UUID(0, count.incrementAndGet())
}
