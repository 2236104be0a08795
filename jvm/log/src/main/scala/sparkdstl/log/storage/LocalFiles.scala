package sparkdstl.log.storage

import java.nio.file.{Files, Path}
import java.util.concurrent.ExecutorService

import scala.concurrent.{ExecutionContext, Future}

/** A directory on a local disk for what can be fetched again. Nothing here is relied upon. Thread-safe. */
trait LocalFiles {

  /** Writes a file. What came of an earlier one of that name is gone. */
  def write(name: String, content: Array[Byte]): Future[Unit]

  /** The whole file. */
  def read(name: String): Future[Array[Byte]]

  def delete(name: String): Future[Unit]
}

/**
 * Local files, read and written on threads of their own.
 *
 * @param directory
 *   makes the directory, when it is first needed
 * @param threads
 *   owned by the caller
 */
final class ThreadedLocalFiles(directory: () => Path, threads: ExecutorService) extends LocalFiles {
  private implicit val executor: ExecutionContext = ExecutionContext.fromExecutorService(threads)
  private lazy val made = directory()

  override def write(name: String, content: Array[Byte]): Future[Unit] =
    Future(Files.write(made.resolve(name), content): Unit)

  override def read(name: String): Future[Array[Byte]] = Future(Files.readAllBytes(made.resolve(name)))

  override def delete(name: String): Future[Unit] = Future(Files.deleteIfExists(made.resolve(name)): Unit)
}
