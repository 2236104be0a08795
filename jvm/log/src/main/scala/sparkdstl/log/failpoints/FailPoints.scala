// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.failpoints

import scala.concurrent.Future

import sparkdstl.log.request.{QueryStorage, StorageClient}

/** Named places at which tests stop a process or make it fail. */
trait FailPoints {

  /** Stops or fails here if a test requires it. */
  def hit(name: String, batch: Long): Unit

  /** Runs `action` after the fail point, which blocks no shared thread. */
  def before[T](name: String, batch: Long)(action: => Future[T]): Future[T]

  /** The driver's storage, with a stop before a commit entry is created. */
  def beforeCommitEntries(storage: QueryStorage): QueryStorage

  /** An executor's storage, with a stop before a data file is written. Its first segment determines the batch. */
  def beforeUploads(storage: QueryStorage): StorageClient
}

object FailPoints {

  /** The interpreter of the variable `SPARK_DSTL_FAIL_POINTS`, a class in the test jar; None if it is not set. */
  val ofTests: Option[FailPoints] = sys.env.get("SPARK_DSTL_FAIL_POINTS").map { points =>
    val interpreter = Class.forName("sparkdstl.log.failpoints.ScriptedFailPoints")
    interpreter.getConstructor(classOf[String]).newInstance(points).asInstanceOf[FailPoints]
  }

  def hit(name: String, batch: => Long): Unit = ofTests.foreach(_.hit(name, batch))
}
