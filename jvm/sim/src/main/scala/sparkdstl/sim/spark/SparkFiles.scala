package sparkdstl.sim.spark

import java.io.{FileNotFoundException, IOException}

import scala.concurrent.{ExecutionContext, Future, Promise}

import org.apache.hadoop.fs.FileAlreadyExistsException

import sparkdstl.log.runtime.Timer
import sparkdstl.log.storage.{Attempt, ObjectStore, Payload}
import sparkdstl.sim.world.KnownPaths

/** The requests that Spark makes for files of its own: tried a few times, as any client does. */
final class SparkFiles(storage: ObjectStore, timer: Timer)(implicit executor: ExecutionContext) {
  private val Tries = 6
  private val PatienceMillis = 20000L

  private val pathOf = new KnownPaths

  def list(directory: String): Future[Seq[String]] =
    retried(Tries)(storage.list(pathOf(directory))).map(_.map(_.path.toString).sorted)

  def read(path: String): Future[Option[Array[Byte]]] =
    retried(Tries)(storage.read(pathOf(path), Int.MaxValue.toLong))
      .map(Option(_))
      .recover { case _: FileNotFoundException => None }

  def replace(path: String, content: Array[Byte]): Future[Unit] =
    retried(Tries)(storage.replace(pathOf(path), Payload(content)))

  /** Creates; finding the same content there is success. */
  def create(path: String, content: Array[Byte]): Future[Unit] =
    retried(Tries)(storage.create(pathOf(path), Payload(content))).recoverWith {
      case exists: FileAlreadyExistsException =>
        read(path).flatMap { found =>
          if (found.exists(_.sameElements(content))) Future.unit else Future.failed(exists)
        }
    }

  def delete(names: Seq[String]): Future[Unit] =
    if (names.isEmpty) Future.unit else retried(Tries)(storage.delete(names.map(pathOf)))

  private def retried[T](left: Int)(attempt: => Attempt[T]): Future[T] = {
    val running = attempt
    val promise = Promise[T]()
    running.result.onComplete(promise.tryComplete(_): Unit)
    val timeout = timer.schedule(PatienceMillis) { () =>
      if (promise.tryFailure(new IOException("no answer from storage"))) running.cancel()
    }
    promise.future.onComplete(_ => timeout.cancel())
    promise.future.recoverWith {
      case e: IOException
          if left > 1 && !e.isInstanceOf[FileNotFoundException] && !e.isInstanceOf[FileAlreadyExistsException] =>
        retried(left - 1)(attempt)
    }
  }
}
