package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.TaskContext
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.streaming.state.dstl.worker.CurrentBatch
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout}

/**
 * A late task of the batch before takes a store whose newest task has committed and not sealed yet: then the local state is the
 * late task's, and so is the snapshot that is made of it.
 */
class LateAttemptsSuite extends QuerySuite with Patience {
  private val stores = 2

  // Both batches' tasks are there at once.
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

  test("a seal carries no snapshot of what a late attempt has put in the place of the sealed state") {
    val materializations = DstlEnvironment.get.resources.materializations
    val unfinished = materializations.started.value - StateStores.uploadedSnapshots
    val input = numbers()
    val query = LateAttempts.totals(input.toDF(), spark).writeStream.outputMode("update")
      .option("checkpointLocation", checkpoint.toString).foreachBatch(LateAttempts.collect _).start()
    def feed(values: Range): Unit = {
      input.addData(values)
      query.processAllAvailable()
    }
    try {
      (0 to LateAttempts.LateBatch).foreach(_ => feed(0 until 16))
      LateAttempts.begin()
      // Not all keys: the values of the others would be those of the snapshot.
      input.addData(0 until 4)
      eventually(assert(LateAttempts.committed.get() == stores))
      // What is uploaded from here on is the late attempts'.
      eventually(assert(materializations.started.value - StateStores.uploadedSnapshots == unfinished))
      val before = StateStores.uploadedSnapshots
      LateAttempts.late.start()
      eventually(assert(StateStores.uploadedSnapshots == before + stores))
      LateAttempts.maySeal.countDown()
      query.processAllAvailable()
      val segments = LoggedBatches.index(checkpoint, LateAttempts.LateBatch + 1L).toSeq.flatMap(_.entries)
      assert(segments.nonEmpty && !segments.exists(_.key.kind.isOfSnapshot))
      LateAttempts.end()
      feed(0 until 1)
    } finally {
      LateAttempts.end()
      query.stop()
    }
    StateStores.close()
    val state = StoredStates.read(spark, checkpoint.toString, Map.empty)
    assert(state.size == 16 && !state.exists(_.contains(WrongAtFirst.Wrong.toString)), state)
  }
}

/** What the late attempts and those that they come between share with the test. */
object LateAttempts {

  /** The late attempts make this batch again, during the one after it. */
  val LateBatch = 1

  @volatile private var isBegun = false
  private val waiting = ConcurrentHashMap.newKeySet[Long]()
  @volatile var maySeal = new CountDownLatch(0)

  /** How many tasks of the batch have committed their store. */
  val committed = new AtomicInteger
  @volatile var late = new Thread

  def begin(): Unit = {
    committed.set(0)
    waiting.clear()
    maySeal = new CountDownLatch(1)
    isBegun = true
  }

  /** Lets all tasks continue. */
  def end(): Unit = {
    isBegun = false
    maySeal.countDown()
    late.join()
  }

  def collect(rows: DataFrame, batch: Long): Unit = {
    rows.collect(): Unit
    // Made here, it has the properties of the batch.
    if (batch == LateBatch) late = new Thread(() => { rows.collect(); () }, "late attempts")
  }

  def totals(rows: DataFrame, session: SparkSession): DataFrame = {
    import session.implicits._
    rows.as[Int].groupByKey(_ % 16).mapGroupsWithState(GroupStateTimeout.NoTimeout)(count).toDF()
  }

  private def count(key: Int, values: Iterator[Int], state: GroupState[Int]): (Int, Int) = {
    val context = TaskContext.get()
    val isLate = isBegun && CurrentBatch.isAt(LateBatch)
    if (isBegun && waiting.add(context.taskAttemptId())) {
      // Listeners run last come first: the store is committed then, and what was committed is not sealed.
      context.addTaskCompletionListener[Unit] { (_: TaskContext) =>
        if (!isLate) committed.incrementAndGet(): Unit
        maySeal.await(60, TimeUnit.SECONDS): Unit
      }: Unit
    }
    val after = if (isLate) WrongAtFirst.Wrong else state.getOption.getOrElse(0) + values.size
    state.update(after)
    (key, after)
  }
}
