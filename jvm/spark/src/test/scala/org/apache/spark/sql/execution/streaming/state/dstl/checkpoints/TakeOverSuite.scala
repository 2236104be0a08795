// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.checkpoints

import java.nio.file.Files

import scala.jdk.CollectionConverters._

import org.apache.commons.io.FileUtils

import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.BuiltFor

/**
 * Checkpoints that queries continue with stock Spark and with the log in turn, for operators with one and with several stores, and
 * with changes of the checkpoint format version.
 */
class TakeOverSuite extends ComparisonSuite {
  private val join =
    Operator("join", Joins.join("full_outer"), state = Joins.state, readsBoth = true)
  private val operators = Seq(Operator.totals, join)

  /** Plays the first batches with one contender and the last with another. */
  private def handOver(operator: Operator, from: Contender, to: Contender): (Playing, Outcome) = {
    val playing = new Playing(operator, from, fresh(s"${from.name}-${to.name}"))
    playing.play(batches.take(2))
    configure(playing.session, to.and(operator.configuration.toSeq: _*))
    playing.play(batches.drop(2))
    (playing, Outcome(playing.output, operator.state.map(playing.readState)))
  }

  for (operator <- operators; version <- Seq(1, 2))
    test(s"${operator.name}: a stock checkpoint is continued in the log, checkpoint format version $version") {
      // Changelog checkpointing is an option of stock Spark's provider, which stays; without it there are no changelogs.
      val stockSpark +: others = inFormat(version, stock, ours.and(changelogKey -> "true"), below): @unchecked
      val wanted = expectedOf(operator, stockSpark)
      // Spark records the provider's class in the checkpoint, so it keeps stock's although ours is configured.
      others.foreach { contender =>
        val (playing, outcome) = handOver(operator, stockSpark, contender)
        assert(outcome == wanted, contender.name)
        assert(LoggedBatches.of(playing.checkpoint) == Set(2))
      }
    }

  test("taken over without changelog checkpointing a query continues with snapshots, after one warning") {
    val playing = new Playing(Operator.totals, stock, fresh("snapshots"))
    playing.play(batches.take(2))
    configure(playing.session, ours.and(changelogKey -> "false"))
    val warnings = Warnings.during(playing.play(batches.drop(2)))
    assert(warnings.count(_.contains(s"$changelogKey=true")) == 1, warnings)
    assert(playing.output == expectedOf(Operator.totals).batches)
    assert(LoggedBatches.of(playing.checkpoint) == Set.empty)
  }

  for (operator <- operators; version <- Seq(1, 2))
    test(
      s"${operator.name}: without the file manager a query whose state is in the log does not start, deletes nothing, " +
        s"and names the setting, checkpoint format version $version"
    ) {
      val Seq(fileManager, stockSpark) = inFormat(version, below, stock): @unchecked
      val playing = new Playing(operator, fileManager, fresh("opened-by-stock"))
      playing.play(batches.take(2))
      val (before, entries) = (playing.output, LoggedBatches.of(playing.checkpoint))
      configure(playing.session, stockSpark.and("spark.sql.streaming.minBatchesToRetain" -> "1"))
      val error = failure(playing.play(batches.drop(2)))
      assert(error.contains(s"$fileManagerKey=${classOf[DstlCheckpointFileManager].getName}"), error)
      assert(playing.output == before, "it gave rows that are built on no state")
      assert(LoggedBatches.of(playing.checkpoint) == entries)
      configure(playing.session, fileManager)
      playing.catchUp()
      assert(playing.output == expectedOf(operator, stockSpark).batches, "it cannot continue with the log")
    }

  test("stock Spark without the provider's class says which class it lacks, once the log is off") {
    val playing = new Playing(Operator.totals, ours.and(option("enabled") -> "false"), fresh("no-jar"))
    playing.play(batches.take(2))
    val offsets = playing.checkpoint.resolve("offsets/1")
    // As for a Spark without the jar, which lacks the class that the checkpoint names.
    val pinned = classOf[DstlStateStoreProvider].getName
    Files.writeString(offsets, Files.readString(offsets).replace(pinned, s"$pinned.Absent"))
    Files.deleteIfExists(playing.checkpoint.resolve("offsets/.1.crc"))
    configure(playing.session, stock)
    val error = failure(playing.play(batches.drop(2)))
    assert(error.contains("ClassNotFoundException") && error.contains(s"$pinned.Absent"), error)
  }

  test("a plain snapshot above those that were taken over is not loaded: an interrupted repartition leaves such ones") {
    assume(SparkFacts.UnloadsOnCommit, "on this Spark, stores do not write a snapshot with each batch")
    val playing = new Playing(Operator.totals, stock.and(Operator.snapshots.configuration.toSeq: _*), fresh("above"))
    val stockProvider = classOf[RocksDBStateStoreProvider].getName
    playing.play(batches.take(2))
    Seq("0", "1").map(playing.checkpoint.resolve("offsets").resolve(_)).foreach { offsets =>
      Files.writeString(
        offsets,
        Files.readString(offsets).replace(stockProvider, classOf[DstlStateStoreProvider].getName)
      )
      Files.deleteIfExists(offsets.resolveSibling(s".${offsets.getFileName}.crc"))
    }
    configure(playing.session, ours.and(Operator.snapshots.configuration.keys.toSeq.zip(Seq("100", "false")): _*))
    playing.play(batches.drop(2))
    val zips = FileUtils.listFiles(playing.checkpoint.resolve("state").toFile, Array("zip"), true).asScala
      .filter(_.getName == "2.zip")
    assert(zips.nonEmpty)
    zips.foreach(zip => Files.copy(zip.toPath, zip.toPath.resolveSibling("3.zip")))
    assert(Outcome(playing.output, Operator.totals.state.map(playing.readState)) == expectedOf(Operator.totals))
  }

  // Spark 4.2 refuses all of these, and 4.3 those from 2 to 1: what Spark allows, this project's provider must as well.
  for (operator <- Seq(Operator.totals, Operator.snapshots); (from, to) <- Seq((1, 2), (2, 1)))
    test(s"${operator.name}: a change of checkpoint format version from $from to $to behaves as in stock Spark") {
      val outcomes = Seq(stock, ours).map { contender =>
        try Right(handOver(operator, inFormat(from, contender).head, inFormat(to, contender).head)._2)
        catch { case e: Exception => Left(condition(e)) }
      }
      info(s"stock Spark: ${outcomes.head.fold(identity, _ => "continues")}")
      // Stock Spark fails on the snapshots' names; this project's provider names the cause.
      val named = outcomes.head.left.map(_ => "DSTL_OTHER_CHECKPOINT_FORMAT")
      assert(outcomes(1) == outcomes.head || outcomes(1) == named)
    }

  for ((from, to) <- Seq((1, 2), (2, 1)))
    test(
      s"a start with checkpoint format $to on a log of $from is refused by name, and one with the old format continues"
    ) {
      assume(BuiltFor.Line != "3.5", "this Spark has one format")
      assume(from == 2 || !SparkFacts.AddsCheckpointIds, "this Spark continues, as a test above compares")
      for (contender <- Seq(ours, below)) {
        val playing =
          new Playing(Operator.totals, inFormat(from, contender).head, fresh(s"${contender.name}-$from-$to"))
        playing.play(batches.take(2))
        configure(playing.session, inFormat(to, contender).head)
        val error = failure(playing.play(batches.drop(2)))
        assert(error.contains("DSTL_OTHER_CHECKPOINT_FORMAT"), error)
        assert(error.contains(s"commits/1 has format $from, and $to is configured. Set $formatKey to $from"), error)
        assert(!Files.exists(playing.checkpoint.resolve("offsets/2")), "a batch was begun")
        if (from == 2 && playing.isReadable) {
          val unread = messages(intercept[Exception](playing.readState(Map.empty)))
          assert(unread.contains("[DSTL_OTHER_CHECKPOINT_FORMAT]"), unread)
          assert(!unread.contains("create a new checkpoint location"), unread)
        }
        configure(playing.session, inFormat(from, contender).head)
        playing.catchUp()
        assert(playing.output == expectedOf(Operator.totals).batches)
      }
    }

  /** Spark's name for the innermost error that has one. */
  private def condition(error: Throwable): String =
    messages(error).linesIterator.flatMap("""\[([A-Z_.0-9]+)\]""".r.findAllMatchIn(_)).map(_.group(1))
      .filterNot(_ == "STREAM_FAILED").toSeq.lastOption.getOrElse(messages(error))
}
