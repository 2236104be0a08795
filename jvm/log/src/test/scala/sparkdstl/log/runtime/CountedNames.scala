// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import java.util.UUID
import java.util.concurrent.atomic.AtomicLong

/** Random numbers that are always 0.5, and names from a counter. */
final class CountedNames extends RandomSource {
  private val count = new AtomicLong

  override def nextDouble(): Double = 0.5

  override def nextUuid(): UUID = new UUID(0, count.incrementAndGet())
}
