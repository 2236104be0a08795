// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.nio.file.Files
import java.util.UUID

import scala.util.Try

import org.apache.hadoop.fs.Path
import org.scalatest.time.{Seconds, Span}

import sparkdstl.log.format.{LogFileIndex, SegmentKey, SegmentKind}

import org.apache.spark.sql.Row
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state.{RocksDB, RocksDBFileManager}
import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.EntryPoints
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.{StreamingQuery, Trigger}
import org.apache.spark.util.Utils

/** Snapshots in the background: commit entries hold them, loads read them from there, and the log before them is deleted. */
class MaterializationSuite extends QuerySuite with Patience {
  private val stores = 3

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    // Each of these characters means something in a URI, or in a pattern of Hadoop's.
    "spark.local.dir" -> directory.resolve("a b%20#[1]{c}").toString,
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1",
    "spark.sql.streaming.stateStore.autoSnapshotRepair.enabled" -> "true",
    option("materialize.replayCost") -> "100000",
    option("batch.persistDelay") -> "100ms"
  )

  // Spark keeps the local directory of the process's first context.
  override def beforeEach(): Unit = {
    Utils.clearLocalRootDirs()
    super.beforeEach()
  }

  override def afterEach(): Unit =
    try super.afterEach()
    finally Utils.clearLocalRootDirs()

  /** A running count of keys, fed one batch at a time. */
  private final class Counting(done: Int = 0) {
    private val input = numbers()
    private var fed = done
    (0 until done).foreach(batch => input.addData(rows(batch)))
    val query: StreamingQuery = start(counts(input, 40), s"counting$done")

    def rows(batch: Int): Range = 0 until 100 + batch

    def feed(): Unit = {
      input.addData(rows(fed))
      fed += 1
      query.processAllAvailable()
    }

    /** Feeds until the newest entry with snapshots holds one of each store, of versions above this one. */
    def feedUntilHeld(above: Long): Unit = eventually {
      feed()
      val held = snapshots.filter(_.version > above)
      assert(held.map(_.storeDirectory).toSet.size == stores)
      ()
    }
  }

  /** Runs `body` with a query that is stopped afterwards. */
  private def counting[T](done: Int = 0)(body: Counting => T): T = {
    val counting = new Counting(done)
    try body(counting)
    finally counting.query.stop()
  }

  private def indexes: Seq[LogFileIndex] = LoggedBatches.indexes(checkpoint)

  private def snapshots: Seq[SegmentKey] = indexes.flatMap(_.entries).map(_.key).filter(_.kind == SegmentKind.Snapshot)

  private def dataFiles: Set[String] = files().filter(_.matches("dstl/data/.*\\.log")).map(_.stripPrefix("dstl/")).toSet

  /** The state after the first `batches` batches. */
  private def expected(batches: Int): Set[Row] = (0 until batches).flatMap(0 until 100 + _).groupBy(_ % 40).map {
    case (key, of) => Row(key, of.size.toLong)
  }.toSet

  private def state(options: (String, String)*): Set[Row] =
    spark.read.format("statestore").options(options.toMap).load(checkpoint.toString)
      .select(col("key._groupingexpression"), col("value.count")).collect().toSet

  for (format <- SparkFacts.ReadableFormats.map(_.toString))
    test(s"snapshots in the log leave no file in a store's directory, and hold the committed state, format $format") {
      configure(formatKey -> format)
      counting()(_.feedUntilHeld(above = 0))
      assert(!files().exists(file => file.endsWith(".sst") || file.contains(".zip")))
      val held = indexes.flatMap(_.snapshots).flatMap(_.held)
      assert(held.nonEmpty && held.flatMap(_.files).toSet.subsetOf(dataFiles))
      val done = LoggedBatches.entries(checkpoint).size
      assert(state() == expected(done))
      // The newest state is rebuilt from each snapshot alone and the log after it.
      held.map(_.key.version).distinct.foreach { version =>
        val from = held.filter(_.key.version == version).map(_.key.partition)
        from.foreach { partition =>
          val rebuilt =
            state("snapshotStartBatchId" -> (version - 1).toString, "snapshotPartitionId" -> partition.toString)
          assert(rebuilt.nonEmpty && rebuilt.subsetOf(expected(done)))
        }
      }
      counting(done)(_.feed())
      assert(state() == expected(done + 1))
      assert(DstlEnvironment.get.resources.replayMetrics.skippedSnapshot.value == 0)
    }

  for (format <- Seq("1", "2"))
    test(s"a damaged or missing snapshot costs time and no state, where Spark continues without it, format $format") {
      configure(formatKey -> format)
      counting() { query =>
        query.feedUntilHeld(above = 0)
        query.feedUntilHeld(above = snapshots.map(_.version).max)
      }
      val done = LoggedBatches.entries(checkpoint).size
      val newest = snapshots.groupBy(_.storeDirectory).values.map(_.map(_.version).max).min
      val ofNewest = indexes.flatMap(_.entries)
        .filter(of => of.key.kind == SegmentKind.SnapshotFile && of.key.version >= newest).flatMap(
          _.parts
        ).flatMap(_.file).toSet
      assert(ofNewest.nonEmpty)
      ofNewest.zipWithIndex.foreach {
        // Where Spark does not continue, the first file that a task comes to decides about the error.
        case (file, number) if number == 0 || !SparkFacts.RepairsSnapshots =>
          val path = checkpoint.resolve("dstl").resolve(file)
          val bytes = Files.readAllBytes(path)
          bytes(30) = (bytes(30) ^ 1).toByte
          Files.write(path, bytes)
        case (file, _) => Files.delete(checkpoint.resolve("dstl").resolve(file))
      }
      files().filter(file => file.matches("dstl/data/.*\\.crc")).foreach(file => Files.delete(checkpoint.resolve(file)))
      val before = DstlEnvironment.get.resources.replayMetrics.skippedSnapshot.value
      counting(done) { again =>
        if (SparkFacts.RepairsSnapshots) again.feed()
        else assert(intercept[Exception](again.feed()).getMessage.contains("DSTL_DAMAGED_LOG"))
      }
      assert(DstlEnvironment.get.resources.replayMetrics.skippedSnapshot.value > before)
      if (SparkFacts.RepairsSnapshots) assert(state() == expected(done + 1))
    }

  test("retention deletes the log below the second newest snapshot, and older snapshots") {
    // Spark alone would retain one snapshot.
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "1")
    // Each store has had two snapshots by now.
    var fewest = Int.MaxValue
    def look(): Unit = {
      val kept = snapshots.groupBy(_.storeDirectory).values.map(_.size)
      if (fewest < Int.MaxValue || kept.size == stores && kept.forall(_ >= 2)) fewest = (kept.toSeq :+ fewest).min
    }
    counting() { query =>
      (1 to 4).foreach { _ =>
        query.feedUntilHeld(above = snapshots.map(_.version).maxOption.getOrElse(0L))
        look()
        StateStores.maintain()
      }
      eventually {
        query.feed()
        look()
        StateStores.maintain()
        val oldest = LoggedBatches.entries(checkpoint).head
        val kept = snapshots.groupBy(_.storeDirectory)
        assert(oldest > 3 && kept.size == stores && kept.values.forall(of => of.size >= 2 && of.size < 6))
        assert(dataFiles == indexes.flatMap(_.entries).flatMap(_.parts).flatMap(_.file).toSet)
      }
      // Until the last deletion has completed.
      val lowest = LoggedBatches.entries(checkpoint).head
      eventually {
        query.feed()
        look()
        StateStores.maintain()
        assert(LoggedBatches.entries(checkpoint).head > lowest)
      }
      assert(fewest >= 2 && fewest < Int.MaxValue)
    }
    assert(state() == expected(LoggedBatches.entries(checkpoint).last.toInt + 1))
  }

  test("Spark's maintenance finds a snapshot only once no rollback can remove the entry that holds it") {
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "2")
    def listed(run: UUID): Seq[Long] = {
      val configuration = spark.sessionState.newHadoopConf()
      configuration.set(StreamExecution.RUN_ID_KEY, run.toString)
      configuration.setBoolean(EntryPoints.LogsSnapshots, true)
      val store = new Path(s"$checkpoint/state/0/0")
      new DstlCheckpointFileManager(store, configuration).list(store, _.getName.endsWith(".zip")).toSeq
        .map(_.getPath.getName.stripSuffix(".zip").toLong)
    }
    counting() { counting =>
      counting.feedUntilHeld(above = 0)
      assert(listed(counting.query.runId) == Nil)
      var last = Seq.empty[Long]
      eventually {
        counting.feed()
        last = listed(counting.query.runId)
        assert(last.nonEmpty)
      }
      val newest = LoggedBatches.entries(checkpoint).last
      last.foreach { version =>
        val holds = LoggedBatches.entries(checkpoint).filter { batch =>
          LoggedBatches.index(checkpoint, batch).toSeq.flatMap(_.entries).map(_.key)
            .exists(key => key.kind == SegmentKind.Snapshot && key.version == version && key.storeDirectory == "0/0")
        }
        assert(holds.exists(_ <= newest - 2), s"of $last")
      }
    }
  }

  test("Spark's maintenance forgets the files of snapshots that the driver deletes") {
    counting()(_.feedUntilHeld(above = 0))
    counting(LoggedBatches.entries(checkpoint).size) { again =>
      again.feed()
      def remembered = StateStores.loaded.collect { case of: DstlStateStoreProvider => SnapshotMemory.of(of.rocksDB) }
      assert(remembered.sum >= stores)
      StateStores.maintain()
      assert(remembered.sum == 0)
    }
  }

  test("snapshots that are made after the log is switched off are complete in plain files") {
    counting()(_.feedUntilHeld(above = 0))
    val done = LoggedBatches.entries(checkpoint).size
    spark.conf.set(option("enabled"), "false")
    counting(done) { plain =>
      eventually {
        plain.feed()
        StateStores.maintain()
        assert((0 until stores).forall(store => files().exists(_.matches(s"state/0/$store/\\d+\\.zip"))))
      }
    }
    files().filter(_.startsWith("dstl/data/")).foreach(file => Files.delete(checkpoint.resolve(file)))
    assert(state() == expected(LoggedBatches.entries(checkpoint).size))
  }

  test("an unchanged file is not uploaded again") {
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    val input = numbers()
    val query = start(counts(input, 5000), "unchanged")
    def names: Seq[(Long, Set[String])] = indexes.flatMap(_.entries).map(_.key)
      .filter(key => key.kind == SegmentKind.SnapshotFile).groupBy(_.version).map { case (version, of) =>
        version -> of.flatMap(_.snapshotFile).toSet
      }.toSeq.sortBy(_._1)
    try {
      val metrics = DstlEnvironment.get.resources.materializations
      feed(query, input, 0 until 5000)
      (1L to 3L).foreach { count =>
        eventually {
          feed(query, input, 0 until 1)
          assert(metrics("completed") >= count)
        }
      }
      // A later snapshot names files that an earlier one uploaded, by their earlier names.
      val listed = indexes.flatMap(index => index.entries.filter(_.key.kind == SegmentKind.SnapshotFile).map(_.key))
      assert(listed.size > listed.distinct.size, names)
    } finally query.stop()
  }

  test("a store that returns to a process fetches its missing and damaged files") {
    val progress = DstlEnvironment.get.resources.recoveryProgress
    val kept = DstlEnvironment.get.resources.sstCache
    def restart(done: Int): (Long, Long) = {
      val before = (progress("snapshotBytesFetched"), progress("snapshotBytesLocal"))
      counting(done)(_.feed())
      StateStores.close()
      assert(progress("storesLoading") == 0 && progress("snapshotBytesToDo") == 0)
      (progress("snapshotBytesFetched") - before._1, progress("snapshotBytesLocal") - before._2)
    }
    def entries = LoggedBatches.entries(checkpoint).size
    val before = kept.bytes
    counting() { first =>
      first.feedUntilHeld(above = 0)
      // The answer to its next seal tells a store that an entry holds its snapshot.
      eventually {
        first.feed()
        assert(kept.bytes > before)
      }
    }
    StateStores.close()
    spark.conf.set(option("materialize.replayCost"), "0")
    // Some stores may not have that answer yet.
    restart(entries): Unit
    val (fetched, local) = restart(entries)
    assert(fetched == 0 && local > 0)
    // Damages the files in the local cache.
    val names = indexes.flatMap(_.entries).map(_.key).flatMap(_.snapshotFile)
    val links = for {
      store <- 0 until stores
      name <- names.distinct
      link <- kept.find(s"file:$checkpoint/state/0/$store", name)(_ => true)
    } yield link
    assert(links.size >= stores)
    links.foreach(link => Files.write(link, Files.readAllBytes(link).updated(100, 99.toByte)))
    val again = restart(entries)
    assert(again._1 == local && again._2 == 0)
    // So many runs have begun that one of them has made another snapshot, of files that are not here yet.
    assert(restart(entries)._2 == local)
    spark.conf.set(option("localRecovery.maxSize"), "0")
    assert(state() == expected(entries))
  }

  test("a store is snapshotted when its interval is over") {
    spark.conf.set(option("materialize.replayCost"), "0")
    spark.conf.set(option("materialize.interval"), "1s")
    counting()(_.feedUntilHeld(above = 0))
  }

  if (SparkFacts.AsksForSnapshots)
    test("a snapshot that Spark asks for is not taken again while it is under way") {
      spark.conf.set(option("materialize.replayCost"), "0")
      spark.conf.set(option("batch.persistDelay"), "1min")
      spark.conf.set("spark.sql.shuffle.partitions", "1")
      val input = Files.createDirectories(directory.resolve("input"))
      // Spark asks a store that is five versions behind, after each further batch.
      (1 to 10).foreach(number => Files.writeString(input.resolve(s"$number.txt"), s"$number"))
      val counts = spark.readStream.option("maxFilesPerTrigger", 1).text(input.toString).groupBy("value").count()
      val query = counts.writeStream.format("noop").outputMode("update").trigger(Trigger.AvailableNow())
        .option("checkpointLocation", checkpoint.toString).start()
      query.awaitTermination()
      val flushed = query.recentProgress.flatMap(_.stateOperators)
        .map(_.customMetrics.get("rocksdbTotalBytesWrittenByFlush").toLong).toSeq
      assert(flushed.size == 10 && flushed.count(_ > 0) == 1, flushed)
    }

  test("a store that is unloaded after each batch is snapshotted when its interval is over") {
    spark.conf.set("spark.sql.streaming.stateStore.unloadOnCommit", "true")
    counting()(_.feedUntilHeld(above = 0))
    assert(state() == expected(LoggedBatches.entries(checkpoint).size))
  }

  for ((what, fails) <- Seq("fail" -> true, "log" -> false))
    test(s"a snapshot that keeps failing is counted, and the query continues or fails as configured: $what") {
      spark.conf.set(option("materialize.onFailure"), what)
      spark.conf.set(option("materialize.maxFailures"), "2")
      val counting = new Counting
      counting.feed()
      // No process can write there.
      Files.createDirectories(checkpoint.resolve("dstl"))
      Files.write(checkpoint.resolve("dstl/data"), Array[Byte](1))
      val metrics = DstlEnvironment.get.resources.materializations
      try
        if (fails) {
          eventually(timeout(Span(100, Seconds))) {
            Try(counting.feed())
            assert(!counting.query.isActive)
          }
          assert(Iterator.iterate[Throwable](counting.query.exception.get)(_.getCause).takeWhile(_ != null)
            .exists(_.getMessage.contains("DSTL_MATERIALIZATION_FAILED")))
        } else eventually {
          counting.feed()
          assert(metrics.failed.value >= 2 * stores)
        }
      finally counting.query.stop()
    }
}

private object SnapshotMemory {
  private val manager = classOf[RocksDBFileManager].getDeclaredField("versionToRocksDBFiles")
  manager.setAccessible(true)

  /** The number of snapshots whose files Spark's manager of a store's snapshots remembers. */
  def of(database: RocksDB): Int = manager.get(database.fileManager).asInstanceOf[java.util.Map[_, _]].size
}
