// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.{EOFException, FileNotFoundException, IOException}
import java.nio.file.NoSuchFileException

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileAlreadyExistsException, ParentNotDirectoryException, Path}
import org.apache.hadoop.security.AccessControlException

import sparkdstl.log.error.{Causes, DstlException}

/** An attempt that was cancelled before it began, or could not begin: it has no effect. */
final class AttemptNotMade(why: String, cause: Throwable = null) extends IOException(why, cause)

/** An object is shorter than expected. Reading it again does not help. */
final class ObjectEndsBefore(path: Path, offset: Long, length: Int, actual: Long)
    extends EOFException(s"$path is $actual bytes long: wanted $length bytes from offset $offset")

/** Classifies errors of storage clients, which share no hierarchy and are mostly not on the class path. */
object StorageErrors {
  private val PreconditionFailed = 412
  private val Conflict = 409
  private val Refusals = Set(401, 403)
  private val StatusInMessage = """Status Code: (\d{3})""".r.unanchored

  // Statuses that refuse a request without excluding the effect of an earlier one: an upload that is unknown or ended, timeout,
  // conflict, too many requests, and a client that closed the connection.
  private val TellsNothing = Set(404, 408, Conflict, 410, 429, 499)

  // Quotas of HDFS, and S3A's exception for a missing bucket; then the words of file systems.
  private val OperatorsErrors = Set(
    "NSQuotaExceededException",
    "DSQuotaExceededException",
    "QuotaByStorageTypeExceededException",
    "UnknownStoreException"
  )
  private val OperatorsWords = Seq(
    "Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "No space left on device",
    "Disk quota exceeded",
    "Mkdirs failed to create"
  )

  /** Whether a retry may succeed. Unknown errors are retryable, because most are transient. */
  def isRetryable(error: Throwable): Boolean = error match {
    case _: DstlException | _: ObjectEndsBefore => false
    case _: FileAlreadyExistsException | _: java.nio.file.FileAlreadyExistsException => false
    case _: ParentNotDirectoryException | _: UnsupportedOperationException | _: IllegalArgumentException => false
    case e if isNameTooLong(e) || Causes.of(e).exists(isForbidden) => false
    // Some streams of S3A do not convert it to an AccessDeniedException.
    case e if Causes.of(e).flatMap(statusOf).exists(Refusals) => false
    case e => NonFatal(e)
  }

  private def isForbidden(error: Throwable) = error match {
    case _: AccessControlException | _: java.nio.file.AccessDeniedException => true
    case _ => false
  }

  /** Whether a read failed because the object is shorter than expected. A broken stream does not show that. */
  def meansTooShort(error: Throwable): Boolean = Causes.of(error).exists(_.isInstanceOf[ObjectEndsBefore])

  /** Whether `error`, which is retryable, is likely to last until an operator acts: a full disk, or a missing bucket. */
  def needsOperator(error: Throwable): Boolean = isRetryable(error) && Causes.of(error).exists { cause =>
    val message = Option(cause.getMessage).getOrElse("")
    OperatorsErrors(cause.getClass.getSimpleName) || OperatorsWords.exists(message.contains(_))
  }

  /** Whether `error` is storage's answer that a request has no effect and never will. */
  def isDefinite(error: Throwable): Boolean = error match {
    // The SDK and S3A retry the last request of a multipart upload, and the first one may have completed it.
    case e if Causes.of(e).exists(_.getClass.getSimpleName == "NoSuchUploadException") => false
    case _: AttemptNotMade | _: DstlException => true
    case _: FileNotFoundException | _: NoSuchFileException => true
    case _: UnsupportedOperationException | _: IllegalArgumentException => true
    case e =>
      !isRetryable(e) && NonFatal(e) || meansAlreadyExists(e) ||
      Causes.of(e).flatMap(statusOf).exists(status => status >= 400 && status < 500 && !TellsNothing(status))
  }

  /** Whether `error` means that the requested object does not exist. */
  def meansMissing(error: Throwable): Boolean = error match {
    // S3A's exception for a missing bucket does not concern the object.
    case e if e.getClass.getSimpleName == "UnknownStoreException" => false
    case _: FileNotFoundException | _: NoSuchFileException => true
    case _ => false
  }

  /** Whether `error` means that an exclusive create was refused because an object exists. */
  private[log] def meansAlreadyExists(error: Throwable): Boolean = Causes.of(error).exists {
    case _: FileAlreadyExistsException | _: java.nio.file.FileAlreadyExistsException => true
    case e => e.getClass.getSimpleName == "RemoteFileChangedException" || statusOf(e).contains(PreconditionFailed)
  }

  /** Whether `error` means that another request for the same object, with an unknown outcome, was under way. */
  private[log] def meansConcurrentRequest(error: Throwable): Boolean =
    Causes.of(error).exists(statusOf(_).contains(Conflict))

  private[storage] def alreadyExists(path: Path, cause: Throwable): IOException =
    new FileAlreadyExistsException(s"$path already exists").initCause(cause).asInstanceOf[IOException]

  private def isNameTooLong(error: Throwable): Boolean = {
    val message = Option(error.getMessage).getOrElse("")
    message.contains("File name too long") || message.contains("KeyTooLongError") ||
    error.getClass.getSimpleName == "PathComponentTooLongException"
  }

  /** The HTTP status of an exception: from a method of its client's exceptions, or from the message. */
  private def statusOf(error: Throwable): Option[Int] = statusByMethod(error).orElse(statusByMessage(error))

  private def statusByMethod(error: Throwable): Option[Int] =
    try Some(error.getClass.getMethod(statusMethod(error)).invoke(error)).collect { case status: Integer =>
        status.intValue
      }
    catch { case _: ReflectiveOperationException => None }

  private def statusMethod(error: Throwable): String = error.getClass.getSimpleName match {
    // Exceptions of Google's two clients. Their packages differ from connector to connector.
    case "GoogleJsonResponseException" | "HttpResponseException" => "getStatusCode"
    case "StorageException" => "getCode"
    // Of S3A and the AWS SDK.
    case _ => "statusCode"
  }

  private def statusByMessage(error: Throwable): Option[Int] = error.getMessage match {
    case StatusInMessage(status) => Try(status.toInt).toOption
    case _ => None
  }
}
