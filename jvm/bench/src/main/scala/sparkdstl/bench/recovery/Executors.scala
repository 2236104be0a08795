// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.recovery

import sparkdstl.bench.{Asked, DelayedFileSystem}

import org.apache.spark.SparkEnv
import org.apache.spark.sql.SparkSession

/** The executor processes of this application: children of this process. */
private final class Executors(spark: SparkSession, number: Int) {
  import Executors._

  /** Their requests so far, by id. Waits until all are there. */
  def look(): Map[String, Seen] = {
    val until = System.nanoTime() + AllWithinNanos
    var seen = Map.empty[String, Seen]
    while (seen.size < number) {
      if (System.nanoTime() > until)
        throw new IllegalStateException(s"of $number executors only ${seen.keys.mkString(", ")} answered")
      // Tasks take a moment: one executor could run them all otherwise.
      seen = spark.sparkContext.parallelize(0 until number * 4, number * 4).map { _ =>
        Thread.sleep(50)
        SparkEnv.get.executorId -> Seen(ProcessHandle.current().pid(), DelayedFileSystem.requests)
      }.collect().toMap
    }
    seen
  }

  /** Sends SIGKILL. */
  def kill(pid: Long): Unit = {
    val process = ProcessHandle.current().descendants().filter(_.pid() == pid).findFirst()
      .orElseThrow(() => new IllegalStateException(s"process $pid was not started by this one"))
    if (!process.destroyForcibly()) throw new IllegalStateException(s"process $pid could not be killed")
  }
}

private object Executors {
  type Requests = Map[(String, String, String), Asked]
  val NoRequests: Requests = Map.empty

  /** @param requests that it has made of storage since it started */
  final case class Seen(pid: Long, requests: Requests)

  private val AllWithinNanos = 120L * 1000 * 1000 * 1000
}
