package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.file.Files

import sparkdstl.testing.{CountingFileSystem, Operation}

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._

/** What the first batch after a restart asks of storage for its stores, counted. */
class RestartRequestsSuite extends QuerySuite {
  private val partitions = 5

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + CountingFileSystem.entry._1 -> CountingFileSystem.entry._2,
    "spark.sql.shuffle.partitions" -> partitions.toString,
    // It asks in the background, now and then.
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h",
    option("upload.retryPolicy") -> "none"
  )

  /** Runs `batches` more batches of a query with `confs`, and what `atTheEnd` does while it still runs. */
  private def run(done: Int, batches: Int, confs: (String, String)*)(atTheEnd: => Unit): Unit = {
    startSpark(confs: _*)
    CountingFileSystem.reset()
    val session = spark
    import session.implicits._
    implicit val context: SQLContext = spark.sqlContext
    val input = MemoryStream[Int]
    (0 until done).foreach(_ => input.addData(0 until 100))
    val query = start(
      input.toDF().groupBy((col("value") % 50).as("key")).count(),
      s"restarted$done",
      at = s"counting://$directory/checkpoint"
    )
    try {
      (done until done + batches).foreach { _ =>
        input.addData(0 until 100)
        query.processAllAvailable()
      }
      atTheEnd
    } finally {
      query.stop()
      stopSpark()
    }
  }

  private def snapshotsOf(version: Int): Seq[String] = files().filter(_.matches(s"state/.*/$version(_[^.]+)?\\.zip"))

  for (format <- Seq("1", "2"))
    test(
      s"a restart lists each store once and fetches each file of its snapshot once, checkpoint format version $format"
    ) {
      stopSpark()
      val formatted = "spark.sql.streaming.stateStore.checkpointFormatVersion" -> format
      def deltas(count: Int) = "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> count.toString
      run(0, 3, deltas(1), formatted)(StateStores.maintain())
      assert(snapshotsOf(3).size == partitions)
      run(3, 2, deltas(1000), formatted)(())
      run(5, 1, deltas(1000), formatted) {
        val counts = CountingFileSystem.snapshot()
        def ofStores(operation: Operation): Map[String, Int] = counts.pathsOf(operation)
          .map(path => checkpoint.relativize(java.nio.file.Paths.get(path.toUri.getPath)).toString)
          .filter(_.matches("state/0/\\d+(/(?!_metadata).*)?"))
          .groupBy(identity).view.mapValues(_.size).toMap
        assert(ofStores(Operation.List).filter(_._1.matches("state/0/\\d+")) ==
          (0 until partitions).map(partition => s"state/0/$partition" -> 1).toMap)
        // Checksum files are there with checkpoint ids, and read as Spark's own manager of them does.
        assert(ofStores(Operation.Head).filterNot(_._1.endsWith(".zip.crc")) == Map.empty)
        val opened = ofStores(Operation.Open)
        assert(opened.keySet.filter(_.endsWith(".zip")) == snapshotsOf(3).toSet)
        assert(opened.keySet.exists(_.endsWith(".sst")))
        assert(opened.filter(_._2 > 1) == Map.empty)
        ()
      }
      assert(Files.exists(checkpoint.resolve("commits/5")))
    }
}
