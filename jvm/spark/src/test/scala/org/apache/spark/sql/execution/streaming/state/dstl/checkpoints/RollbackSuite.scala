// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.checkpoints

import java.nio.file.{Files, Path => LocalPath}

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.state.dstl._

/** After the deletion of commit entries a query continues as with stock Spark. */
class RollbackSuite extends ComparisonSuite {
  private val operator = Operator.totals

  private def delete(checkpoint: LocalPath, names: String*): Unit = {
    // Until then a write that a hedge has overtaken may create the file again.
    DstlEnvironment.get.driver.foreach(_.endOn(new Path(s"file:$checkpoint")))
    assert(files(checkpoint).exists(_.matches("dstl/epochs/\\d+\\.ended")))
    names.foreach { name =>
      val file = checkpoint.resolve(name)
      Files.delete(file)
      Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc")): Unit
    }
  }

  private lazy val expected: Outcome = expectedOf(operator)

  private val uploading = ours.and(option("inline.maxSegmentSize") -> "0").named("uploading")

  // Without any commit entry stock Spark has no checkpoint id to continue from, so this test has format 1 only.
  for (contender <- Seq(ours, uploading, below))
    test(
      s"with all commit entries purged by the query's own log, the newest batch runs again on the state before it: " +
        contender.name
    ) {
      val playing = new Playing(operator, contender, fresh("purged"))
      val query = playing.start()
      try batches.take(2).foreach(playing.feed(query, _))
      finally query.stop()
      val before = playing.output
      execution(query).commitLog.purge(2)
      assert(!Files.exists(playing.checkpoint.resolve("commits/1")), "the newest entry is there, so nothing runs again")
      playing.catchUp()
      assert(playing.output == before)
      playing.play(batches.drop(2))
      val outcome = Outcome(playing.output, operator.state.map(playing.readState))
      assert(outcome == expected)
    }

  for (version <- Seq(1, 2); contender <- inFormat(version, ours, uploading, below))
    test(s"deleting the newest entries is a rollback to the batch before them: ${contender.name}") {
      val at = fresh("back")
      val first = new Playing(operator, contender, at)
      // The deleted batches differ from those that replace them, so a trace of them shows.
      first.play(Seq(batches.head, batches(2), batches(2)))
      // The caches of this process may hold no trace of them either.
      operator.state.foreach(first.readState(_): Unit)
      delete(at, "commits/2", "offsets/2", "commits/1", "offsets/1")
      val second = new Playing(operator, contender, at)
      second.add(batches.head)
      second.play(batches.drop(1).take(1))
      second.play(batches.drop(2))
      val state = if (second.isReadable) expected.state else Seq(Nil)
      assert((first.output - 1L - 2L) ++ second.output == expected.batches)
      assert(operator.state.map(second.readState) == state)
    }

  for (isUndone <- Seq(true, false))
    test(
      "the maintenance of a stopped query's stores writes snapshots of its commits, " +
        (if (isUndone) "unless a rollback has deleted them" else "which stand")
    ) {
      val at = fresh("maintained")
      val stores = StateStores.loaded
      val first = new Playing(operator, below.and("spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1"), at)
      first.play(Seq(batches.head, batches(2), batches(2)))
      if (isUndone) delete(at, "commits/2", "offsets/2", "commits/1", "offsets/1")
      StateStores.loaded.diff(stores).foreach(store => Try(StoreMaintenance.run(store)))
      val snapshots = files(at).filter(_.matches("state/.*/[23]\\.zip"))
      if (isUndone) {
        val second = new Playing(operator, below, at)
        second.add(batches.head)
        second.play(batches.drop(1))
        assert(Outcome((first.output - 1L - 2L) ++ second.output, operator.state.map(second.readState)) == expected)
      }
      assert(snapshots.nonEmpty != isUndone, snapshots)
    }

  test("commit entries are listed in ascending order on storage that lists in any order") {
    val commits = Files.createDirectories(fresh("listed").resolve("commits"))
    (40 to 0 by -1).foreach(batch => Files.writeString(commits.resolve(batch.toString), "v1\n{}"))
    val path = new Path(commits.toString)
    val manager = new DstlCheckpointFileManager(path, spark.sessionState.newHadoopConf())
    assert(manager.list(path).map(_.getPath.getName.toInt).toSeq == (0 to 40))
  }
}
