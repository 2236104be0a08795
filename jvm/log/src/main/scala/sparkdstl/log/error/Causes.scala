// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.error

import scala.util.control.NonFatal

/** The chain of causes of an error: storage clients wrap errors several times. */
object Causes {
  def of(error: Throwable): Iterator[Throwable] = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(20)

  /** The error and its root cause. */
  def describe(error: Throwable): String = {
    val root = of(error).toVector.last
    if ((root eq error) || String.valueOf(error.getMessage).contains(root.toString)) error.toString
    else s"$error; caused by $root"
  }

  /** The error's text without a period or question mark at its end, for a sentence that continues. */
  def text(error: Throwable): String = String.valueOf(error.getMessage).replaceFirst("[.?!\\s]+$", "")

  /** Closes all, and then throws the first error, to which the others are suppressed. */
  def closingAll[A](all: Iterator[A])(close: A => Unit): Unit = {
    val errors = all.flatMap { one =>
      try {
        close(one)
        None
      } catch { case error: Throwable => Some(error) }
    }.toVector
    errors.headOption.foreach { first =>
      errors.tail.filterNot(_ eq first).foreach(first.addSuppressed)
      throw first
    }
  }

  /** Runs `action`, and after an error also `cleanUp`, whose own error is suppressed. */
  def cleaningUp[T](cleanUp: => Unit)(action: => T): T =
    try action
    catch {
      case error: Throwable =>
        try cleanUp
        catch { case NonFatal(second) => error.addSuppressed(second) }
        throw error
    }
}
