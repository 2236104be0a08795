package sparkdstl.log.storage

import java.io.{EOFException, FileNotFoundException, IOException}
import java.nio.file.NoSuchFileException

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileAlreadyExistsException, ParentNotDirectoryException, Path}
import org.apache.hadoop.security.AccessControlException

import sparkdstl.log.error.{Causes, DstlException}

/** An attempt was cancelled before it was begun, or could not be begun: it has no effect. */
final class AttemptNotMade(why: String, cause: Throwable = null) extends IOException(why, cause)

/** An object is shorter than it must be: reading it again would give the same. */
final class ObjectEndsBefore(path: Path, offset: Long, length: Int, actual: Long)
    extends EOFException(s"$path is $actual bytes long: wanted $length bytes from offset $offset")

/** What storage clients mean by their errors. They share no hierarchy, and most are not on our class path. */
object StorageErrors {
  private val PreconditionFailed = 412
  private val Conflict = 409
  private val Refusals = Set(401, 403)
  private val StatusInMessage = """Status Code: (\d{3})""".r.unanchored

  // Of the statuses that refuse a request, those that tell nothing about an earlier one: it came too late, met another
  // one under way, or its caller had ended.
  private val TellsNothing = Set(408, Conflict, 499)

  /** Whether the same request may succeed when made again. Unknown errors may: most are passing ones. */
  def isRetryable(error: Throwable): Boolean = error match {
    case _: DstlException | _: ObjectEndsBefore => false
    case _: FileAlreadyExistsException | _: java.nio.file.FileAlreadyExistsException => false
    case _: AccessControlException | _: java.nio.file.AccessDeniedException => false
    case _: ParentNotDirectoryException | _: UnsupportedOperationException | _: IllegalArgumentException => false
    case e if isNameTooLong(e) => false
    // Not every stream of S3A's makes an AccessDeniedException of it.
    case e if Causes.of(e).flatMap(statusOf).exists(Refusals) => false
    case e => NonFatal(e)
  }

  /** Whether `error` is storage's own answer that a request has no effect, and never will have. */
  def isDefinite(error: Throwable): Boolean = error match {
    case _: AttemptNotMade | _: DstlException => true
    case _: FileNotFoundException | _: NoSuchFileException => true
    case _: UnsupportedOperationException | _: IllegalArgumentException => true
    case e =>
      !isRetryable(e) && NonFatal(e) || meansAlreadyExists(e) ||
      Causes.of(e).flatMap(statusOf).exists(status => status >= 400 && status < 500 && !TellsNothing(status))
  }

  /** Whether `error` means that the requested object does not exist. */
  def meansMissing(error: Throwable): Boolean = error match {
    // S3A's for a bucket that is not there: that is not an answer about an object.
    case e if e.getClass.getSimpleName == "UnknownStoreException" => false
    case _: FileNotFoundException | _: NoSuchFileException => true
    case _ => false
  }

  /** Whether `error` means that an exclusive create was refused because an object exists. */
  private[log] def meansAlreadyExists(error: Throwable): Boolean = Causes.of(error).exists {
    case _: FileAlreadyExistsException | _: java.nio.file.FileAlreadyExistsException => true
    case e => e.getClass.getSimpleName == "RemoteFileChangedException" || statusOf(e).contains(PreconditionFailed)
  }

  /** Whether `error` means that another request for the same object was under way, whose outcome is unknown. */
  private[log] def meansConcurrentRequest(error: Throwable): Boolean =
    Causes.of(error).exists(statusOf(_).contains(Conflict))

  private[storage] def alreadyExists(path: Path, cause: Throwable): IOException =
    new FileAlreadyExistsException(s"$path already exists").initCause(cause).asInstanceOf[IOException]

  private def isNameTooLong(error: Throwable): Boolean = {
    val message = Option(error.getMessage).getOrElse("")
    message.contains("File name too long") || message.contains("KeyTooLongError") ||
    error.getClass.getSimpleName == "PathComponentTooLongException"
  }

  /** HTTP status of a service's exception: S3A and the AWS SDK have a method `statusCode`, others only say it. */
  private def statusOf(error: Throwable): Option[Int] = statusByMethod(error).orElse(statusByMessage(error))

  private def statusByMethod(error: Throwable): Option[Int] =
    try Some(error.getClass.getMethod("statusCode").invoke(error)).collect { case status: Integer => status.intValue }
    catch { case _: ReflectiveOperationException => None }

  private def statusByMessage(error: Throwable): Option[Int] = error.getMessage match {
    case StatusInMessage(status) => Try(status.toInt).toOption
    case _ => None
  }
}
