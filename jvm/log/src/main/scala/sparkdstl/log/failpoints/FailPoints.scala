package sparkdstl.log.failpoints

import scala.concurrent.Future

import sparkdstl.log.request.{QueryStorage, StorageClient}

/** Named places where tests make a process stop or fail. */
trait FailPoints {

  /** Stops or fails here if a test asked for it. */
  def hit(name: String, batch: Long): Unit

  /** Runs `action` after the fail point, which blocks no shared thread. */
  def before[T](name: String, batch: Long)(action: => Future[T]): Future[T]

  /** The driver's storage, with a stop before a commit entry is created. */
  def beforeCommitEntries(storage: QueryStorage): QueryStorage

  /** An executor's storage, with a stop before a data file is written: its first segment has the batch. */
  def beforeUploads(storage: QueryStorage): StorageClient
}

object FailPoints {

  /** With the environment variable `SPARK_DSTL_FAIL_POINTS`, the class in the test jar that interprets it. */
  val ofTests: Option[FailPoints] = sys.env.get("SPARK_DSTL_FAIL_POINTS").map { points =>
    val interpreter = Class.forName("sparkdstl.log.failpoints.ScriptedFailPoints")
    interpreter.getConstructor(classOf[String]).newInstance(points).asInstanceOf[FailPoints]
  }

  def hit(name: String, batch: => Long): Unit = ofTests.foreach(_.hit(name, batch))
}
