// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim

import scala.collection.immutable.BitSet
import scala.collection.mutable

/**
 * A flaw that can be put back into the protocol.
 *
 * @param list
 *   the part of the protocol
 * @param missing
 *   the line that it replaces and its file, if the file does not contain that line exactly once
 */
final case class Flaw(list: String, name: String, sentence: String, missing: Option[String])

object Flaw {
  private val None = -1

  // Both belong to the one thread that runs worlds in this process.
  private var current = None
  private val asked = mutable.BitSet.empty

  /** Whether the protocol has flaw `number` of the table; called where the flaw changes the result. */
  def is(number: Int): Boolean = {
    asked += number
    isOn(number)
  }

  /** Like [[is]], but called where the flaw may not change the result. */
  def isOn(number: Int): Boolean = current == number

  /** The value of an expression, where `flawed` is the value with flaw `number`. */
  def compared[T](number: Int, value: T)(flawed: => Any): T = {
    if (value != flawed) asked += number
    value
  }

  /** Runs `action` and returns the flaws that would change it. */
  def met[T](action: => T): (T, BitSet) = {
    asked.clear()
    val result = action
    (result, asked.toImmutable)
  }

  /** Runs `action` with the flaw put back. */
  def putBack[T](number: Int)(action: => T): T = {
    current = number
    try action
    finally current = None
  }
}
