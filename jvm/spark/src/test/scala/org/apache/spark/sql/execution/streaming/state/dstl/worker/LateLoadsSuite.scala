// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.worker

import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit}

import org.apache.spark.TaskContext
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout}

/**
 * A late attempt of the previous batch holds a store when the next batch's task comes, and commits: the local state is then of the
 * right version, and the late attempt's.
 */
class LateLoadsSuite extends QuerySuite with Patience {

  // The late attempt and the task run at the same time, and the task is tried again.
  override protected def master: String = "local[2,4]"

  override protected def configuration: Map[String, String] =
    super.configuration ++ Map("spark.sql.shuffle.partitions" -> "1")

  override def afterEach(): Unit = {
    LateAttempts.end()
    super.afterEach()
  }

  test("a task that waits for its store does not take a late attempt's state for a committed one") {
    val input = numbers()
    val query = LateAttempts.totals(input.toDF(), spark).writeStream.outputMode("update")
      .option("checkpointLocation", checkpoint.toString).foreachBatch(LateAttempts.collect _).start()
    val (holds, mayCommit) = (new CountDownLatch(1), new CountDownLatch(1))
    try {
      (0 to LateAttempts.LateBatch).foreach(_ => feed(query, input, 0 until 16))
      LateAttempts.begin { (context, isLate) =>
        if (isLate) {
          if (context.attemptNumber() > 0) throw new IllegalStateException("the late attempt is not repeated")
          holds.countDown()
          mayCommit.await(60, TimeUnit.SECONDS): Unit
        }
      }
      LateAttempts.late.start()
      assert(holds.await(60, TimeUnit.SECONDS))
      // Not all keys: the values of the others would be the late attempt's.
      input.addData(0 until 4)
      eventually(assert(StateStores.isAwaited))
      mayCommit.countDown()
      query.processAllAvailable()
      LateAttempts.end()
      feed(query, input, 0 until 16)
      val batches = LateAttempts.LateBatch + 2
      assert(LateAttempts.newest == (0 until 16).map(key => key -> (if (key < 4) batches + 1 else batches)).toMap)
    } finally {
      mayCommit.countDown()
      LateAttempts.end()
      query.stop()
    }
  }
}

/** The state that the late attempts, the attempts of the next batch and the test share. */
object LateAttempts {

  /** The batch that the late attempts run again, during the next one. */
  val LateBatch = 1

  @volatile private var atFirst = Option.empty[(TaskContext, Boolean) => Unit]
  private val seen = ConcurrentHashMap.newKeySet[Long]()
  @volatile var late = new Thread

  /** The rows of the query's newest batch. */
  @volatile var newest = Map.empty[Int, Int]

  /** From now on each attempt calls this once while it holds its store, with whether it is late. */
  def begin(atFirst: (TaskContext, Boolean) => Unit): Unit = {
    seen.clear()
    this.atFirst = Some(atFirst)
  }

  def end(): Unit = {
    atFirst = None
    late.join()
  }

  def collect(rows: DataFrame, batch: Long): Unit = {
    newest = rows.collect().map(row => row.getInt(0) -> row.getInt(1)).toMap
    // Created on this thread, it has the properties of the batch.
    if (batch == LateBatch) late = new Thread(() => { rows.collect(); () }, "late attempts")
  }

  def totals(rows: DataFrame, session: SparkSession): DataFrame = {
    import session.implicits._
    rows.as[Int].groupByKey(_ % 16).mapGroupsWithState(GroupStateTimeout.NoTimeout)(count).toDF()
  }

  private def count(key: Int, values: Iterator[Int], state: GroupState[Int]): (Int, Int) = {
    val context = TaskContext.get()
    val isLate = atFirst.nonEmpty && CurrentBatch.isAt(LateBatch)
    if (seen.add(context.taskAttemptId())) atFirst.foreach(_.apply(context, isLate))
    val after = if (isLate) WrongAtFirst.Wrong else state.getOption.getOrElse(0) + values.size
    state.update(after)
    (key, after)
  }
}
