// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.spark

import java.io.{FileNotFoundException, IOException}

import scala.concurrent.{ExecutionContext, Future, Promise}

import org.apache.hadoop.fs.FileAlreadyExistsException

import sparkdstl.log.runtime.Timer
import sparkdstl.log.storage.{ObjectStore, Payload, StorageOperation}
import sparkdstl.log.storage.StorageOperation.{Create, Delete, ListObjects, Read, Replace}
import sparkdstl.sim.machines.KnownPaths

/** Spark's requests for its own files, with a few retries like any client. */
final class SparkFiles(storage: ObjectStore, timer: Timer)(implicit executor: ExecutionContext) {
  private val Tries = 6
  private val PatienceMillis = 20000L

  private val pathOf = new KnownPaths

  def list(directory: String): Future[Seq[String]] =
    retried(ListObjects(pathOf(directory))).map(_.map(_.path.toString).sorted)

  def read(path: String): Future[Option[Array[Byte]]] =
    retried(Read(pathOf(path), Int.MaxValue.toLong)).recover { case _: FileNotFoundException => None }

  def replace(path: String, content: Array[Byte]): Future[Unit] =
    retried(Replace(pathOf(path), Payload(content)))

  /** Creates a file; a conflict with the same content is a success. */
  def create(path: String, content: Array[Byte]): Future[Unit] =
    retried(Create(pathOf(path), Payload(content))).map(_ => ()).recoverWith {
      case exists: FileAlreadyExistsException =>
        read(path).flatMap { found =>
          if (found.exists(_.sameElements(content))) Future.unit else Future.failed(exists)
        }
    }

  def delete(names: Seq[String]): Future[Unit] =
    if (names.isEmpty) Future.unit else retried(Delete(names.map(pathOf)))

  private def retried[T](operation: StorageOperation[T], left: Int = Tries): Future[T] = {
    val running = storage.begin(operation)
    val promise = Promise[T]()
    running.result.onComplete(promise.tryComplete(_): Unit)
    val timeout = timer.schedule(PatienceMillis) { () =>
      if (promise.tryFailure(new IOException("no answer from storage"))) running.cancel()
    }
    promise.future.onComplete(_ => timeout.cancel())
    promise.future.recoverWith {
      case e: IOException
          if left > 1 && !e.isInstanceOf[FileNotFoundException] && !e.isInstanceOf[FileAlreadyExistsException] =>
        retried(operation, left - 1)
    }
  }
}
