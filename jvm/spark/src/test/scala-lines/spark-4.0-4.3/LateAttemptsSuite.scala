// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.worker

import java.util.concurrent.{CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state.dstl._

/**
 * A late task of the previous batch takes a store whose newest task has committed but not sealed: then the local state is the late
 * task's, and so is a snapshot of it.
 */
class LateAttemptsSuite extends QuerySuite with Patience {
  private val stores = 2

  // The tasks of both batches run at the same time.
  override protected def master: String = "local[4]"

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.sql.shuffle.partitions" -> stores.toString,
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h",
    // A store that is loaded again after fewer makes its snapshot in the background.
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "2",
    option("materialize.replayCost") -> "100000",
    option("batch.persistDelay") -> "10ms"
  )

  override def afterEach(): Unit = {
    LateAttempts.end()
    super.afterEach()
  }

  test("a seal carries no snapshot of state that a late attempt has replaced") {
    val materializations = DstlEnvironment.get.resources.materializations
    val unfinished = materializations.started.value - StateStores.uploadedSnapshots
    val maySeal = new CountDownLatch(1)
    val input = numbers()
    val query = LateAttempts.totals(input.toDF(), spark).writeStream.outputMode("update")
      .option("checkpointLocation", checkpoint.toString).foreachBatch(LateAttempts.collect _).start()
    try {
      (0 to LateAttempts.LateBatch).foreach(_ => feed(query, input, 0 until 16))
      val committed = new AtomicInteger
      LateAttempts.begin { (context, isLate) =>
        // Listeners run in reverse order: at this point the store is committed and its changes are not sealed.
        context.addTaskCompletionListener[Unit] { (_: TaskContext) =>
          if (!isLate) committed.incrementAndGet(): Unit
          maySeal.await(60, TimeUnit.SECONDS): Unit
        }: Unit
      }
      // Not all keys: the values of the others would be those of the snapshot.
      input.addData(0 until 4)
      eventually(assert(committed.get() == stores))
      // Later uploads are those of the late attempts.
      eventually(assert(materializations.started.value - StateStores.uploadedSnapshots == unfinished))
      val before = StateStores.uploadedSnapshots
      LateAttempts.late.start()
      eventually(assert(StateStores.uploadedSnapshots == before + stores))
      maySeal.countDown()
      query.processAllAvailable()
      val segments = LoggedBatches.index(checkpoint, LateAttempts.LateBatch + 1L).toSeq.flatMap(_.entries)
      assert(segments.nonEmpty && !segments.exists(_.key.kind.isOfSnapshot))
      LateAttempts.end()
      feed(query, input, 0 until 1)
    } finally {
      maySeal.countDown()
      LateAttempts.end()
      query.stop()
    }
    StateStores.close()
    val state = StoredStateShims.read(spark, checkpoint.toString, Map.empty)
    assert(state.size == 16 && !state.exists(_.contains(WrongAtFirst.Wrong.toString)), state)
  }
}
