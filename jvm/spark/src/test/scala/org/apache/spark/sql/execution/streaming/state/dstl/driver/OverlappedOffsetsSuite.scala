// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.nio.file.{Files, Path => LocalPath}
import java.util.UUID

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.fs.Path

import sparkdstl.testing.GatedFileSystem

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.dstl.{
  DstlCheckpointFileManager,
  DstlEnvironment,
  Patience,
  QuerySuite
}
import org.apache.spark.sql.functions.{col, length}
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery}

/** Batches whose tasks run while the files that plan them are being written. */
class OverlappedOffsetsSuite extends QuerySuite with Patience {

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + GatedFileSystem.entry._1 -> GatedFileSystem.entry._2,
    // A hedge of a write that the test holds would wait like it.
    option("upload.retryPolicy") -> "none",
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h"
  )

  override def afterEach(): Unit =
    try GatedFileSystem.open()
    finally super.afterEach()

  private def at: String = s"gated://$checkpoint"

  private def isThere(file: String): Boolean = Files.exists(checkpoint.resolve(file))

  /** Whether tasks have sealed changes of a batch, and wait for the driver's answer. */
  private def hasSealed(batch: Long): Boolean =
    DstlEnvironment.get.driver.get.on(new Path(at)).get.coordinator.hasSeals(batch)

  /** A query with two batches behind it, so that batch 2 is planned while its tasks run. */
  private final class Counting(name: String) {
    val input: MemoryStream[Int] = numbers()
    private val result = counts(input)
    def begin(): StreamingQuery = start(result, name, at = at)

    def whileRunning(test: StreamingQuery => Any): Unit = {
      val query = begin()
      try {
        (0 to 1).foreach(batch => feed(query, input, batch * 10 until batch * 10 + 10))
        test(query): Unit
      } finally {
        GatedFileSystem.open()
        query.stop()
      }
    }

    /** Tests while the tasks of batch 2 have sealed, and its offsets are being written. */
    def whileOverlapping(test: StreamingQuery => Any): Unit = whileRunning { query =>
      GatedFileSystem.hold("/offsets/2$".r)
      input.addData(20 until 30)
      eventually(assert(hasSealed(2)))
      test(query)
    }
  }

  test("a list of the offsets that another thread asked for before a batch does not hide its entry from the query") {
    configure("spark.sql.streaming.metadataCache.enabled" -> "false")
    val input = numbers()
    var query: StreamingQuery = null
    val purge = new Thread(() => execution(query).offsetLog.getLatestBatchId(): Unit)
    @volatile var found = Option.empty[Boolean]
    query = input.toDF().writeStream.option("checkpointLocation", at).foreachBatch { (_: DataFrame, batch: Long) =>
      if (batch == 1) {
        GatedFileSystem.open()
        purge.join()
        found = Some(execution(query).offsetLog.get(batch).isDefined)
      }
    }.start()
    try {
      feed(query, input, Seq(0))
      GatedFileSystem.holdAnswers("/offsets$".r)
      purge.start()
      eventually(assert(GatedFileSystem.waitingRequests == 1))
      feed(query, input, Seq(1))
      assert(found.contains(true))
    } finally {
      GatedFileSystem.open()
      query.stop()
    }
  }

  test("the end of a run waits for the writes of offsets, which are its own") {
    new Counting("own").whileOverlapping { query =>
      val requests = DstlEnvironment.get.driver.get.on(new Path(at)).get.client.requests
      assert(!requests.whenQuiet.isCompleted)
      GatedFileSystem.open()
      query.processAllAvailable()
      eventually(assert(requests.whenQuiet.isCompleted))
    }
  }

  test("tasks run while the offsets of their batch are written, and nothing is committed before they are") {
    val counting = new Counting("overlapped")
    counting.whileOverlapping { query =>
      assert(!isThere("offsets/2") && !isThere("commits/2"))
      assert(query.lastProgress.batchId == 1)
      GatedFileSystem.open()
      query.processAllAvailable()
      assert(isThere("offsets/2") && isThere("commits/2"))
    }
    assert(rows("overlapped") == counted(0 until 30))
  }

  test("offsets that are being written are read from memory") {
    val counting = new Counting("read")
    counting.whileOverlapping { query =>
      val offsets = new Path(at, "offsets")
      val files = new DstlCheckpointFileManager(offsets, spark.sessionState.newHadoopConf())
      val entry = new Path(offsets, "2")
      assert(files.exists(entry))
      val content = Using.resource(files.open(entry))(_.readAllBytes())
      def listed = files.list(offsets).find(_.getPath.getName == "2").map(status => (status.getPath, status.getLen))
      val before = listed
      GatedFileSystem.open()
      query.processAllAvailable()
      assert(content.sameElements(Files.readAllBytes(checkpoint.resolve("offsets/2"))))
      assert(before.nonEmpty && before == listed)
    }
  }

  test("offsets that another driver has written meanwhile stop the query with an error that names the file") {
    val counting = new Counting("taken")
    counting.whileOverlapping { query =>
      Files.writeString(checkpoint.resolve("offsets/2"), Files.readString(checkpoint.resolve("offsets/1")))
      GatedFileSystem.open()
      val error = messages(intercept[Exception](query.processAllAvailable()))
      assert(error.contains("[DSTL_FENCED]") && error.contains("offsets/2"), error)
      assert(!error.contains("[DSTL_FENCED] [DSTL_FENCED]"), error)
      assert(!isThere("commits/2"))
    }
  }

  test("a query that is stopped while its offsets are written continues from what is there") {
    val counting = new Counting("stopped")
    counting.whileOverlapping { query =>
      query.stop()
      query.exception.foreach(error => fail(error))
      assert(!isThere("commits/2"))
    }
    // The start waits for the write of the run before it: otherwise it could list `offsets` without it.
    complete(counting.begin())
    assert(rows("stopped") == counted(0 until 30))
    assert(isThere("commits/2") && !isThere("commits/3"))
  }

  /** Whether the query's thread waits for storage in the close of the offsets' stream. */
  private def waitsToPlan(query: StreamingQuery): Boolean = Thread.getAllStackTraces.asScala.exists {
    case (thread, stack) => thread.getName.contains(query.runId.toString) &&
      Seq("Waiting", "NumberedDirectory").forall(name => stack.exists(_.getClassName.contains(name)))
  }

  /** Adds input, and expects that no task of that batch runs while its offsets are written. */
  private def writesFirst(batch: Long, query: StreamingQuery)(add: => Any): Unit = {
    GatedFileSystem.hold(s"/offsets/$batch$$".r)
    add: Unit
    eventually(assert(GatedFileSystem.waitingRequests == 1 && waitsToPlan(query)))
    assert(spark.sparkContext.statusTracker.getActiveJobIds().isEmpty)
    GatedFileSystem.open()
    query.processAllAvailable()
  }

  test("the first batch of a run, and the second of a new query, are planned before their tasks run") {
    val counting = new Counting("first")
    for (batches <- Seq(0L to 1L, 2L to 2L)) {
      val query = counting.begin()
      try for (batch <- batches) writesFirst(batch, query)(counting.input.addData(1 to 10))
      finally query.stop()
    }
  }

  test("all batches of a query without state are planned before their tasks run") {
    val input = numbers()
    val query = start(input.toDF(), "plain", OutputMode.Append(), at)
    try for (batch <- 0L to 3L) writesFirst(batch, query)(input.addData(1 to 10))
    finally query.stop()
  }

  test("with `never`, all batches are planned before their tasks run") {
    configure(option("commit.overlapOffsets") -> "never")
    val counting = new Counting("never")
    counting.whileRunning(query => writesFirst(2, query)(counting.input.addData(1 to 10)))
  }

  test("with Spark's own provider, whose snapshots are named by versions alone, `always` means never") {
    configure(
      option("commit.overlapOffsets") -> "always",
      providerKey -> "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
      changelogKey -> "true",
      formatKey -> "1"
    )
    val counting = new Counting("plain")
    counting.whileRunning(query => writesFirst(2, query)(counting.input.addData(1 to 10)))
  }

  test("a sink that may show rows before a batch has ended gets only batches that are planned, except with `always`") {
    val input = numbers()
    def begin() = counts(input).writeStream.outputMode(OutputMode.Complete()).option("checkpointLocation", at)
      .foreachBatch((rows: DataFrame, _: Long) => rows.collect(): Unit).start()
    val query = begin()
    try for (batch <- 0L to 2L) writesFirst(batch, query)(input.addData(1 to 10))
    finally query.stop()
    configure(option("commit.overlapOffsets") -> "always")
    val always = begin()
    try {
      writesFirst(3, always)(input.addData(1 to 10))
      GatedFileSystem.hold("/offsets/4$".r)
      input.addData(1 to 10)
      eventually(assert(hasSealed(4)))
      GatedFileSystem.open()
      always.processAllAvailable()
    } finally always.stop()
  }

  test("the offsets before the last ones stay until the next ones are durable: a restart needs them") {
    stopSpark()
    startSpark("spark.sql.streaming.minBatchesToRetain" -> "1")
    val counting = new Counting("purged")
    counting.whileOverlapping { query =>
      assert(isThere("offsets/0") && isThere("offsets/1"))
      GatedFileSystem.open()
      query.processAllAvailable()
      eventually(assert(!isThere("offsets/0")))
    }
  }

  /** Counts lines of files by length; each batch reads one file, which the source deletes later. */
  private def countLines(input: LocalPath, name: String): StreamingQuery = {
    val lines = spark.readStream.option("maxFilesPerTrigger", 1).option("cleanSource", "delete").text(input.toString)
    start(lines.groupBy(length(col("value")).as("length")).count(), name, at = at)
  }

  private def writeFile(input: LocalPath, number: Int): Unit = {
    val file = Files.writeString(directory.resolve(UUID.randomUUID().toString), s"${"x" * (number % 3)}\n")
    Files.move(file, input.resolve(f"$number%03d.txt")): Unit
  }

  test("offsets are written after the source's entry that they name") {
    val input = Files.createDirectory(directory.resolve("input"))
    (0 to 1).foreach(writeFile(input, _))
    val query = countLines(input, "ordered")
    try {
      query.processAllAvailable()
      assert(query.lastProgress.batchId == 1)
      GatedFileSystem.hold("/sources/0/2$".r)
      writeFile(input, 2)
      eventually(assert(hasSealed(2)))
      assert(!isThere("sources/0/2") && !isThere("offsets/2"))
      GatedFileSystem.open()
      query.processAllAvailable()
      assert(isThere("sources/0/2") && isThere("offsets/2") && isThere("commits/2"))
    } finally query.stop()
    assert(rows("ordered") == Set("[0,1]", "[1,1]", "[2,1]"))
  }

  for (lost <- Seq(Seq("offsets/2"), Seq("offsets/2", "sources/0/2")))
    test(
      s"input is read once if ${lost.mkString(" and ")} never became durable after the source had deleted the input of batch 1"
    ) {
      val input = Files.createDirectory(directory.resolve("input"))
      (0 to 1).foreach(writeFile(input, _))
      val query = countLines(input, "lost")
      try {
        query.processAllAvailable()
        GatedFileSystem.hold("/offsets/2$".r)
        writeFile(input, 2)
        eventually(assert(hasSealed(2)))
        // Spark has committed batch 1 to the source, which deletes its file in the background.
        eventually(assert(!Files.exists(input.resolve("001.txt"))))
      } finally {
        query.stop()
        GatedFileSystem.open()
      }
      eventually(assert(isThere("offsets/2")))
      stopSpark()
      lost.foreach(file => Files.delete(checkpoint.resolve(file)))
      startSpark()
      writeFile(input, 3)
      complete(countLines(input, "lost"))
      assert(rows("lost") == Set("[0,2]", "[1,1]", "[2,1]"))
    }
}
