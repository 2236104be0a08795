// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

import java.util.concurrent.TimeUnit

/**
 * A pin on storage: a reader asks that the log keeps what `batch` needs, for so many milliseconds. Of these, `usedMillis` were over
 * when the run claimed its epoch, by the storage's clock.
 */
private[coordinator] final case class Pin(name: String, batch: Long, millis: Long, usedMillis: Long)

/**
 * The pins that the run knows, with the time of the runtime's timer at which each ends. A pin's time begins when it is listed for
 * the first time, less what was used before the run.
 */
private[coordinator] final case class Pins(endNanos: Map[Pin, Long] = Map.empty) {

  /** The pins of a new listing. None lasts longer than `maxMillis`. */
  def listed(there: Seq[Pin], maxMillis: Long, nowNanos: Long): Pins = Pins(there.iterator.map { pin =>
    def left = math.max(0L, math.min(pin.millis, maxMillis) - pin.usedMillis)
    pin -> endNanos.getOrElse(pin, nowNanos + TimeUnit.MILLISECONDS.toNanos(left))
  }.toMap)

  /** The batches of the pins that last. */
  def batches(nowNanos: Long): Set[Long] = endNanos.collect { case (pin, end) if end - nowNanos > 0 => pin.batch }.toSet

  /** The names of the pins that have ended. */
  def ended(nowNanos: Long): Vector[String] =
    endNanos.iterator.collect { case (pin, end) if end - nowNanos <= 0 => pin.name }.toVector
}
