// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.error

import java.io.IOException

import org.apache.hadoop.fs.Path

/**
 * An error of the log that requires action: a condition name that is stable across releases, parameters, and a message that
 * names the object, the place and the way out.
 *
 * It is an `IOException` because the log replaces files: callers that handle failures of storage handle it too.
 */
class DstlException(
    val condition: String,
    val parameters: Map[String, String],
    val text: String,
    cause: Throwable = null
) extends IOException(s"[$condition] $text", cause)

object DstlException {

  /** The condition of an error of the log. */
  def conditionOf(error: Throwable): Option[String] = Option(error).collect { case named: DstlException =>
    named.condition
  }

  def apply(condition: String, parameters: (String, Any)*)(message: String, cause: Throwable = null): DstlException =
    new DstlException(condition, parameters.map { case (name, value) => name -> value.toString }.toMap, message, cause)
}

/**
 * Stored state cannot be used, because an object is damaged or missing. Its text is `what` is wrong and the way out, which
 * [[withWayOut]] makes precise after the error.
 */
sealed abstract class LostObjectException(
    condition: String,
    parameters: Map[String, String],
    what: String,
    wayOut: Option[String],
    cause: Throwable
) extends DstlException(condition, parameters, s"$what ${wayOut.getOrElse(LogErrors.AnyWayOut)}", cause) {

  def file: Path = new Path(parameters("file"))

  /** Whether the error names the batch to roll back to. */
  def isExplained: Boolean = wayOut.nonEmpty

  /** This error with the way out for its checkpoint. Without a cause: it would be the last text that a user reads. */
  final def withWayOut(wayOut: String): LostObjectException = {
    val explained = withText(Some(wayOut))
    explained.setStackTrace(getStackTrace)
    explained
  }

  protected def withText(wayOut: Option[String]): LostObjectException
}

/** Stored bytes differ from the written ones. Neither retried nor replayed. */
final class DamagedLogException(
    parameters: Map[String, String],
    what: String,
    wayOut: Option[String] = None,
    cause: Throwable = null
) extends LostObjectException("DSTL_DAMAGED_LOG", parameters, what, wayOut, cause) {
  override protected def withText(wayOut: Option[String]) = new DamagedLogException(parameters, what, wayOut)
}

/** An object that a committed batch needs is missing. */
final class MissingLogObjectException(parameters: Map[String, String], what: String, wayOut: Option[String] = None)
    extends LostObjectException("DSTL_MISSING_LOG_OBJECT", parameters, what, wayOut, null) {
  override protected def withText(wayOut: Option[String]) = new MissingLogObjectException(parameters, what, wayOut)
}

/** An option under the project's prefix is unknown or has a value that is not allowed. */
final class InvalidOptionException(condition: String, parameters: Map[String, String], message: String)
    extends DstlException(condition, parameters, message)
