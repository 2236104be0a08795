// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.error

import java.io.IOException

/**
 * An error of the log that requires action: a condition name that is stable across releases, parameters, and a message that
 * names the object, the place and the way out.
 *
 * It is an `IOException` because the log replaces files: callers that handle failures of storage handle it too.
 */
class DstlException(
    val condition: String,
    val parameters: Map[String, String],
    message: String,
    cause: Throwable = null
) extends IOException(s"[$condition] $message", cause)

object DstlException {

  /** The condition of an error of the log. */
  def conditionOf(error: Throwable): Option[String] = Option(error).collect { case named: DstlException =>
    named.condition
  }

  def apply(condition: String, parameters: (String, Any)*)(message: String, cause: Throwable = null): DstlException =
    new DstlException(condition, parameters.map { case (name, value) => name -> value.toString }.toMap, message, cause)
}

/** Stored bytes differ from the written ones. Neither retried nor replayed. */
final class DamagedLogException(parameters: Map[String, String], message: String, cause: Throwable = null)
    extends DstlException("DSTL_DAMAGED_LOG", parameters, message, cause)

/** An object that a committed batch refers to is missing. */
final class MissingLogObjectException(parameters: Map[String, String], message: String, cause: Throwable = null)
    extends DstlException("DSTL_MISSING_LOG_OBJECT", parameters, message, cause)

/** An option under the project's prefix is unknown or has a value that is not allowed. */
final class InvalidOptionException(condition: String, parameters: Map[String, String], message: String)
    extends DstlException(condition, parameters, message)
