// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.nio.file.{Files, Path}
import java.util.concurrent.Executor

import scala.concurrent.Future

/** A directory on a local disk for copies of remote data. Thread-safe. */
trait LocalFiles {

  def write(name: String, content: Array[Byte]): Future[Unit]
  def read(name: String): Future[Array[Byte]]
  def delete(name: String): Future[Unit]
}

/** Reads and writes local files on separate threads, which the caller owns. */
final class ThreadedLocalFiles(directory: Path, threads: Executor) extends LocalFiles {

  // Scala's futures do not complete after a fatal error. The executor limits the threads.
  private val workers = new WorkerThreads(Int.MaxValue, threads, () => ())

  override def write(name: String, content: Array[Byte]): Future[Unit] =
    workers.submit(() => Files.write(directory.resolve(name), content): Unit).result

  override def read(name: String): Future[Array[Byte]] =
    workers.submit(() => Files.readAllBytes(directory.resolve(name))).result

  override def delete(name: String): Future[Unit] =
    workers.submit(() => Files.deleteIfExists(directory.resolve(name)): Unit).result
}
