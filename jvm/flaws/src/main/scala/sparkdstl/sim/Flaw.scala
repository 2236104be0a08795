package sparkdstl.sim

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

  // Set before the first world, by the one thread that runs worlds in this process.
  private var current = None

  /** Whether the protocol has flaw `number` of the table. */
  def is(number: Int): Boolean = current == number

  /** Runs `action` with the flaw put back. */
  def putBack[T](number: Int)(action: => T): T = {
    current = number
    try action
    finally current = None
  }
}
