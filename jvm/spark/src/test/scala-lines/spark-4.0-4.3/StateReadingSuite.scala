// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.checkpoints

import java.nio.file.{Path => LocalPath}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.streaming.state.dstl.{ComparisonSuite, Contender, Joins, Operator, SparkFacts}

/** State in the log is read by Spark's state data sources as stock Spark's state is. */
class StateReadingSuite extends ComparisonSuite {
  private val join = Operator("join", Joins.join("full_outer"), readsBoth = true)

  private def read(session: SparkSession, format: String, at: LocalPath, options: (String, String)*): Seq[String] =
    session.read.format(format).options(options.toMap).load(at.toString).collect().map(_.json).sorted.toSeq

  private def play(operator: Operator, contender: Contender): Playing = {
    val playing = new Playing(operator, contender, fresh(contender.name))
    playing.play(batches.take(2))
    playing.play(batches.drop(2))
    playing
  }

  /** The same read of the same query's state, with stock Spark and with the log. */
  private def sameFor(
      operator: Operator,
      contenders: Seq[Contender]
  )(reads: (SparkSession, LocalPath) => Seq[Any]): Unit = {
    val results = contenders.map { contender =>
      val playing = play(operator, contender)
      // A session that has not run the query and has no contender's configuration: only the checkpoint is read.
      Seq(playing.session, session(contender)).map(reads(_, playing.checkpoint))
    }
    assert(results.head.head.forall(_ != Nil), "nothing is read, so the comparison shows nothing")
    results.flatten.foreach(result => assert(result == results.head.head))
  }

  for (version <- SparkFacts.ReadableFormats) {
    test(s"Spark's readers read each retained batch's state and changes, checkpoint format version $version") {
      sameFor(Operator.totals, inFormat(version, stock, ours)) { (session, at) =>
        val ofBatches = (0 to 2).map(batch => Seq("batchId" -> batch.toString))
        val changes = Seq("readChangeFeed" -> "true", "changeStartBatchId" -> "0")
        val changesOfOne = Seq("readChangeFeed" -> "true", "changeStartBatchId" -> "1", "changeEndBatchId" -> "1")
        (ofBatches ++ Seq(Nil, changes, changesOfOne)).map(read(session, "statestore", at, _: _*))
      }
    }

    test(s"Spark's reader reads both sides and all stores of a join, checkpoint format version $version") {
      sameFor(join, inFormat(version, stock, ours)) { (session, at) =>
        Seq("left", "right").map(side => read(session, "statestore", at, "joinSide" -> side)) ++
          Seq("left-keyToNumValues", "right-keyWithIndexToValue").map(store =>
            read(session, "statestore", at, "storeName" -> store)
          )
      }
    }
  }

  test("Spark's reader of state metadata reads the state") {
    sameFor(join, Seq(stock, ours))((session, at) => Seq(read(session, "state-metadata", at)))
  }

  // Spark opens the stores of a join with column families for writing, though it only reads.
  for (
    (name, operator, sides) <- Seq(("totals", Operator.totals, Seq(Map.empty[String, String]))) ++
      SparkFacts.JoinFormats.filter(_ == 3).map { format =>
        val settings = Map("spark.sql.streaming.join.stateFormatVersion" -> format.toString)
        ("a join", join.copy(configuration = settings), Joins.state)
      }
  ) test(s"state is read while the query runs, as of the last committed batch: $name") {
    val playing = new Playing(operator, ours, fresh("running"))
    val reader = session(ours)
    def state(options: (String, String)*) =
      sides.map(side => read(reader, "statestore", playing.checkpoint, side.toSeq ++ options: _*))
    val query = playing.start()
    try {
      val seen = batches.map { batch =>
        playing.feed(query, batch)
        // A batch without input may follow.
        val committed = query.lastProgress.batchId
        committed -> state()
      }
      assert(seen.forall(_._2.exists(_.nonEmpty)))
      seen.foreach { case (batch, rows) => assert(rows == state("batchId" -> batch.toString)) }
    } finally query.stop()
  }

  for (version <- SparkFacts.ReadableFormats if SparkFacts.UnloadsOnCommit)
    test(s"a partition's state is rebuilt from a snapshot and the log after it, checkpoint format version $version") {
      sameFor(Operator.snapshots, inFormat(version, stock, ours)) { (session, at) =>
        // Stores that are unloaded have a snapshot from the second batch on.
        val from = Seq("snapshotStartBatchId" -> "1", "snapshotPartitionId" -> "0", "batchId" -> "2")
        Seq(read(session, "statestore", at, from: _*))
      }
    }
}
