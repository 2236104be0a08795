// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.world

import java.util.{SplittableRandom, UUID}

import sparkdstl.log.runtime.RandomSource

/** Random numbers from a seed. Each part of the world has its own stream, so that removing a fault does not change the others. */
final class Chance(seed: Long) extends RandomSource {
  private val random = new SplittableRandom(seed)

  /** A separate stream; the same label always gives the same one. */
  def fork(label: String): Chance = new Chance(seed * 31 + label.hashCode)

  override def nextDouble(): Double = random.nextDouble()

  override def nextUuid(): UUID =
    new UUID((random.nextLong() & ~0xf000L) | 0x4000L, (random.nextLong() & ~(3L << 62)) | (2L << 62))

  def nextInt(): Int = random.nextInt()

  def happens(probability: Double): Boolean = probability > 0 && random.nextDouble() < probability

  /** Uniform, from 0 until `end`. */
  def below(end: Int): Int = random.nextInt(end)

  /** Uniform, both ends included. */
  def between(low: Int, high: Int): Int = random.nextInt(low, high + 1)

  def pick[T](choices: IndexedSeq[T]): T = choices(random.nextInt(choices.size))

  /** Milliseconds around a median. */
  def millis(median: Double): Double =
    median * math.exp(0.6 * (random.nextDouble() + random.nextDouble() + random.nextDouble() - 1.5))

  /** The same; `tail` is the chance of one that is [[slowness]] times as slow. */
  def millis(median: Double, tail: Double): Double = {
    val usual = millis(median)
    if (happens(tail)) usual * slowness() else usual
  }

  /** How many times as long as usual something slow takes. */
  def slowness(): Double = 20 + 180 * random.nextDouble()
}
