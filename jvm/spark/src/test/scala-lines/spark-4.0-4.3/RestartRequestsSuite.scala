// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.file.Files

import sparkdstl.log.format.SegmentKind
import sparkdstl.testing.{CountingFileSystem, Operation}

import org.apache.spark.sql.execution.streaming.state.dstl.{LoggedBatches, Patience, QuerySuite, StateStores}

/** Counts the requests to storage by the first batch after a restart. */
class RestartRequestsSuite extends QuerySuite with Patience {
  private val partitions = 5

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + CountingFileSystem.entry._1 -> CountingFileSystem.entry._2,
    "spark.sql.shuffle.partitions" -> partitions.toString,
    // Maintenance sends requests in the background.
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h",
    option("upload.retryPolicy") -> "none"
  )

  /** Runs `batches` more batches of a query with `confs`; runs `after` after each of them while the query runs. */
  private def run(done: Int, batches: Int, confs: (String, String)*)(after: Int => Unit): Unit = {
    startSpark(confs: _*)
    CountingFileSystem.reset()
    val input = numbers()
    (0 until done).foreach(_ => input.addData(0 until 100))
    val query = start(counts(input, 50), s"restarted$done", at = s"counting://$directory/checkpoint")
    try {
      (done until done + batches).foreach { batch =>
        feed(query, input, 0 until 100)
        after(batch)
      }
    } finally {
      query.stop()
      stopSpark()
    }
  }

  for (format <- Seq("1", "2"))
    test(
      s"a restart asks nothing of a store's directory, and fetches what its snapshot consists of once, format $format"
    ) {
      stopSpark()
      def every(version: Boolean) = Seq(
        "spark.sql.streaming.stateStore.checkpointFormatVersion" -> format,
        "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1",
        option("batch.persistDelay") -> "300ms",
        option("materialize.replayCost") -> (if (version) "100000" else "0")
      )
      // The second batch is the first with something to snapshot, the third the first to hold it.
      run(0, 3, every(version = true): _*) { batch =>
        if (batch == 1) eventually(assert(StateStores.uploadedSnapshots >= partitions)): Unit
      }
      run(3, 2, every(version = false): _*)(_ => ())
      val held = LoggedBatches.index(checkpoint, 2).get
      val zips = held.entries.filter(_.key.kind == SegmentKind.Snapshot)
      assert(zips.map(_.key.version).toSet == Set(2) && zips.size == partitions)
      val parts = held.entries.filter(_.key.kind == SegmentKind.SnapshotFile).flatMap(_.parts)
      val dataFiles = parts.flatMap(_.file).distinct
      assert(parts.nonEmpty && dataFiles.size < parts.size, "they share no files")
      run(5, 1, every(version = false): _*) { _ =>
        val counts = CountingFileSystem.snapshot()
        def paths(operation: Operation): Seq[String] = counts.pathsOf(operation)
          .map(path => checkpoint.relativize(java.nio.file.Paths.get(path.toUri.getPath)).toString)
        val ofStores = Seq(Operation.List, Operation.Head, Operation.Open).flatMap(paths)
          .filter(_.matches("state/0/\\d+(/(?!_metadata).*)?"))
        assert(ofStores == Nil)
        val opened = paths(Operation.Open).filter(_.startsWith("dstl/data/"))
        assert(opened.sorted == dataFiles.map(file => s"dstl/$file").sorted, "each once for all stores")
        ()
      }
      assert(Files.exists(checkpoint.resolve("commits/5")))
    }
}
