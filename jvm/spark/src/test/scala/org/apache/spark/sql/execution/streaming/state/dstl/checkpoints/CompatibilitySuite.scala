// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.checkpoints

import java.nio.file.Files

import sparkdstl.log.format.CommitEntry

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.execution.streaming.state.{RocksDBStateStoreProvider, StateStore}
import org.apache.spark.sql.functions._

/** Ways in and out of the log, and the versions of Spark's checkpoint format. */
class CompatibilitySuite extends QuerySuite {

  /** Runs three batches of ten values each; returns the number of values so far. */
  private def run(input: MemoryStream[Int], from: Int, name: String): Int = {
    complete(start(counts(input), name), input, Seq.range(from, from + 30).grouped(10).toSeq: _*)
    assert(rows(name) == counted(0 until from + 30))
    from + 30
  }

  private def stock(): Unit = {
    configure(providerKey -> classOf[RocksDBStateStoreProvider].getName, changelogKey -> "true")
    spark.conf.unset(fileManagerKey)
  }

  private val retained = "spark.sql.streaming.minBatchesToRetain"

  /** Whether the newest entry has the guard. */
  private def hasGuard: Boolean =
    CommitEntry.needsLog(Files.readAllBytes(checkpoint.resolve(s"commits/$newest")))

  private def newest: Int = checkpoint.resolve("commits").toFile.list().flatMap(_.toIntOption).max

  private def changelogFiles: Seq[String] = files().filter(_.endsWith(".changelog"))

  private def logged: Set[Int] = LoggedBatches.of(checkpoint).map(_.toInt)

  for (version <- Seq("1", "2")) {
    for (
      (what, limit) <- Seq("segment" -> ("inline.maxSegmentSize" -> "0"), "batch" -> ("inline.maxBatchSize" -> "100"))
    )
      test(s"changes above the inline limit of a $what are uploaded and survive restarts, format version $version") {
        configure(formatKey -> version, option(limit._1) -> limit._2)
        val input = numbers()
        run(input, run(input, 0, "first"), "second"): Unit
        assert(files(checkpoint.resolve("dstl/data")).nonEmpty)
        assert(changelogFiles == Nil)
      }

    test(s"large changes go to the log in chunks while tasks run, and survive restarts, format version $version") {
      configure(formatKey -> version, "spark.sql.shuffle.partitions" -> "2", option("upload.maxInFlight") -> "1m")
      configure(option("preemptivePersistThreshold") -> "64k", option("batch.persistSizeThreshold") -> "64k")
      val input = numbers()
      // Random text of 400 bytes a key does not compress away: some megabytes of changes a store.
      val hashes = (0 to 2).map(of => s"sha2(string(value + $of), 512)").mkString(", ")
      val texts = input.toDF().select(col("value"), expr(s"concat_ws('-', $hashes)").as("text"))
      val longest = texts.groupBy("text").agg(max("value").as("value"))
      def batch(values: Range, name: String): Unit = {
        input.addData(values)
        complete(start(longest, name))
      }
      batch(0 until 8000, "first")
      batch(8000 until 9000, "second")
      val totals = spark.table("second").agg(sum("value"), count("text")).head()
      assert(totals.getLong(0) == (0 until 9000).sum && totals.getLong(1) == 9000)
      assert(files(checkpoint.resolve("dstl/data")).size > 10)
    }

    test(
      s"with the log disabled later batches are plain files and earlier ones stay readable, format version $version"
    ) {
      configure(formatKey -> version)
      val input = numbers()
      val after = run(input, 0, "first")
      spark.conf.set(option("enabled"), "false")
      val later = run(input, after, "disabled")
      assert(logged == (0 until 3).toSet)
      assert(changelogFiles.nonEmpty)
      spark.conf.set(option("enabled"), "true")
      run(input, later, "enabled"): Unit
      assert(logged == (0 until 3).toSet ++ (6 until 9))
    }
  }

  for (
    (name, more) <- Seq(
      "no snapshots" -> Map.empty[String, String],
      "snapshots and deletion of what they make needless" -> Map(
        "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "2",
        "spark.sql.streaming.stateStore.unloadOnCommit" -> "true"
      )
    )
  ) test(s"the log may be off for longer than commit entries are retained, and on again: $name") {
    configure(more.toSeq :+ "spark.sql.streaming.minBatchesToRetain" -> "2": _*)
    val input = numbers()
    val after = run(input, 0, "first")
    spark.conf.set(option("enabled"), "false")
    val later = run(input, run(input, run(input, after, "off"), "still"), "longer")
    spark.conf.set(option("enabled"), "true")
    val again = run(input, later, "enabled")
    assert(LoggedBatches.of(checkpoint).contains(14L))
    run(input, again, "again"): Unit
    assert(LoggedBatches.of(checkpoint).contains(17L))
  }

  test("the log may be off after a repartition that was interrupted: its snapshots are not those of later batches") {
    configure(formatKey -> "1")
    val input = numbers()
    val after = run(input, 0, "first")
    // A state with other keys, as snapshots of the version after the newest.
    stock()
    configure(changelogKey -> "false")
    val elsewhere = directory.resolve("elsewhere")
    val other = numbers()
    other.addData(100 until 150)
    complete(start(counts(other, keys = 1000), "elsewhere", at = elsewhere.toString))
    val left = files(elsewhere).filter(file => file.endsWith("/1.zip") || file.contains("/SSTs/"))
    left.foreach { file =>
      val target = checkpoint.resolve(file.replace("/1.zip", "/4.zip"))
      Files.createDirectories(target.getParent)
      Files.copy(elsewhere.resolve(file), target)
    }
    assert(left.count(_.endsWith(".zip")) == 3)
    configure(configuration.toSeq :+ changelogKey -> "true" :+ option("enabled") -> "false": _*)
    val later = run(input, after, "off")
    StateStore.stop()
    run(input, later, "again"): Unit
  }

  for (taken <- Seq(true, false))
    test(
      s"the log may be left once no store needs it: ${if (taken) "Spark's provider" else "the provider class alone"} does " +
        "not start before, deletes nothing, and then continues and returns to the log"
    ) {
      val fileManager = fileManagerKey -> classOf[DstlCheckpointFileManager].getName
      def leave(): Unit = if (taken) stock() else spark.conf.unset(fileManagerKey)
      configure(
        "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1",
        "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h"
      )
      if (taken) stock()
      configure(fileManager)
      val input = numbers()
      val after = run(input, 0, "log")
      spark.conf.set(option("enabled"), "false")
      val off = run(input, after, "off")
      leave()
      spark.conf.set(retained, "1")
      val error = messages(failure(start(counts(input), "early")))
      assert(error.contains(s"${fileManager._1}=${fileManager._2}"), error)
      assert(logged == Set(0, 1, 2))
      configure(fileManager)
      val query = start(counts(input), "waiting")
      var values = off
      try while (hasGuard) {
          assert(values < off + 300, "a store needs the log for ever")
          feed(query, input, Seq(values))
          StateStores.maintain()
          values += 1
        }
      finally query.stop()
      leave()
      val later = run(input, run(input, values, "left"), "still")
      assert(changelogFiles.nonEmpty)
      configure(option("enabled") -> "true", fileManager)
      run(input, later, "again"): Unit
      assert(logged == Set(newest - 2, newest - 1, newest))
    }

  if (SparkFacts.HasStateSource) test(
    "state in the log is read by the state data source, also in a session that has never started a query"
  ) {
    run(numbers(), 0, "query"): Unit
    def state(batch: Long): Set[String] =
      spark.read.format("statestore").option("batchId", batch).load(checkpoint.toString)
        .selectExpr("key.*", "value.*").collect().map(_.toString).toSet
    assert(state(2) == counted(0 until 30))
    stopSpark()
    StateStore.stop()
    startSpark()
    assert(state(2) == counted(0 until 30))
    assert(state(0) == counted(0 until 10))
  }

  test("stock Spark continues from commit entries with our note") {
    // Spark records the provider's class in the checkpoint, so this query starts with stock Spark's.
    stock()
    spark.conf.set(fileManagerKey, classOf[DstlCheckpointFileManager].getName)
    spark.conf.set(option("commit.mode"), "sync")
    val input = numbers()
    val after = run(input, 0, "noted")
    assert(LoggedBatches.index(checkpoint, 2).exists(_.entries.isEmpty))
    assert(changelogFiles.nonEmpty)
    stock()
    run(input, after, "stock"): Unit
    assert(LoggedBatches.index(checkpoint, 5).isEmpty)
  }
}
