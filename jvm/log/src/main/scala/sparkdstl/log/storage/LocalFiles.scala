// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.nio.file.{Files, Path}
import java.util.concurrent.ExecutorService

import scala.concurrent.{ExecutionContext, Future}

/** A directory on a local disk for copies of remote data. Thread-safe. */
trait LocalFiles {

  def write(name: String, content: Array[Byte]): Future[Unit]
  def read(name: String): Future[Array[Byte]]
  def delete(name: String): Future[Unit]
}

/** Reads and writes local files on separate threads, which the caller owns. */
final class ThreadedLocalFiles(directory: Path, threads: ExecutorService) extends LocalFiles {
  private implicit val executor: ExecutionContext = ExecutionContext.fromExecutorService(threads)

  override def write(name: String, content: Array[Byte]): Future[Unit] =
    Future(Files.write(directory.resolve(name), content): Unit)

  override def read(name: String): Future[Array[Byte]] = Future(Files.readAllBytes(directory.resolve(name)))
  override def delete(name: String): Future[Unit] = Future(Files.deleteIfExists(directory.resolve(name)): Unit)
}
