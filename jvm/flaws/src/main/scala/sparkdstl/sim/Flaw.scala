package sparkdstl.sim

import scala.collection.immutable.BitSet
import scala.collection.mutable

/**
 * A flaw that is put back into the protocol.
 *
 * @param list
 *   the part of the protocol
 * @param missing
 *   the line that it replaces and its file, if the file does not have that line once
 */
final case class Flaw(list: String, name: String, sentence: String, missing: Option[String])

object Flaw {
  private val None = -1

  // Both are of the one thread that runs worlds in this process.
  private var current = None
  private val asked = mutable.BitSet.empty

  /** Whether the protocol has flaw `number` of the table. */
  def is(number: Int): Boolean = {
    asked += number
    current == number
  }

  /** Runs `action`, and returns the flaws to whose lines it comes. */
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
