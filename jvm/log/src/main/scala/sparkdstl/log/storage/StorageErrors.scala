package sparkdstl.log.storage

import java.io.IOException
import java.lang.reflect.InvocationTargetException

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileAlreadyExistsException, ParentNotDirectoryException, Path}
import org.apache.hadoop.security.AccessControlException

/** What storage clients mean by their errors. They share no hierarchy, and most are not on our class path. */
object StorageErrors {
  private val PreconditionFailed = 412
  private val Conflict = 409
  private val StatusInMessage = """Status Code: (\d{3})""".r.unanchored

  /** Whether the same request may succeed when made again. Unknown errors may: most are passing ones. */
  def isRetryable(error: Throwable): Boolean = error match {
    case _: FileAlreadyExistsException | _: java.nio.file.FileAlreadyExistsException => false
    case _: AccessControlException | _: java.nio.file.AccessDeniedException => false
    case _: ParentNotDirectoryException | _: UnsupportedOperationException | _: IllegalArgumentException => false
    case e if isNameTooLong(e) => false
    case e => NonFatal(e)
  }

  /** Whether `error` says that an exclusive create lost because an object is there. */
  private[storage] def meansAlreadyExists(error: Throwable): Boolean = causes(error).exists {
    case _: FileAlreadyExistsException | _: java.nio.file.FileAlreadyExistsException => true
    case e => e.getClass.getSimpleName == "RemoteFileChangedException" || statusOf(e).contains(PreconditionFailed)
  }

  /** Whether `error` says that another request for the same object was under way. What came of that one is unknown. */
  private[storage] def meansConcurrentRequest(error: Throwable): Boolean =
    causes(error).exists(statusOf(_).contains(Conflict))

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
    catch { case _: ReflectiveOperationException | _: InvocationTargetException => None }

  private def statusByMessage(error: Throwable): Option[Int] = error.getMessage match {
    case StatusInMessage(status) => Try(status.toInt).toOption
    case _ => None
  }

  private def causes(error: Throwable): Iterator[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(20)
}
