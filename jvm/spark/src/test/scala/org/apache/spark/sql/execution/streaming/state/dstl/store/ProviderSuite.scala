// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.execution.streaming.state.{HDFSBackedStateStoreProvider, RocksDBStateStoreProvider}

/** A query's stores and its messages about them, with and without its state in the log. */
class ProviderSuite extends ComparisonSuite {
  private val operator = Operator.totals
  private val hdfsBacked = ours.and(providerKey -> classOf[HDFSBackedStateStoreProvider].getName).named("default")

  test("stores are of Spark's own type") {
    val playing = new Playing(operator, ours, fresh("typed"))
    val query = playing.start()
    try {
      playing.feed(query, batches.head)
      val stores = StateStores.loaded.collect { case provider: DstlStateStoreProvider => provider }.map { provider =>
        val store = provider.getStore(1)
        try store.isInstanceOf[RocksDBStateStoreProvider#RocksDBStateStore]
        finally store.abort()
      }
      assert(stores.nonEmpty && stores.forall(identity))
    } finally query.stop()
  }

  test("the path of a checkpoint may look like that of a store") {
    val expected = expectedOf(operator)
    val at = fresh("named").resolve("state/2024/06")
    val playing = new Playing(operator, ours, at)
    playing.play(batches.take(2))
    StateStores.close()
    playing.play(batches.drop(2))
    assert(playing.output == expected.batches)
    assert(batches.indices.forall(batch => LoggedBatches.index(at, batch.toLong).exists(_.entries.nonEmpty)))
  }

  test("the state of Spark's default provider bypasses the log: one warning a run names the way out") {
    val expected = expectedOf(operator)
    val at = fresh("default")
    val playing = new Playing(operator, hdfsBacked, at)
    val said = Warnings.during {
      playing.play(batches.take(2))
      playing.play(batches.drop(2))
    }
    assert(playing.output == expected.batches)
    val ofTheLog = said.filter(line => line.contains(at.toString) && !line.contains("hence no checksum verification"))
    assert(ofTheLog.size == 2 && ofTheLog.distinct.size == 1, said)
    assert(ofTheLog.head.contains(s"$providerKey=${classOf[DstlStateStoreProvider].getName}"), ofTheLog)
    assert(LoggedBatches.of(at) == Set.empty)
    assert(files(at).forall(!_.startsWith("dstl/data")))
  }

  test("a query logs that its state is in the log only if a batch is written there") {
    val claim = "(?s).*(keeps the state|[1-9][0-9]* segments durable).*"
    val past = Warnings.ofTheLogDuring(new Playing(operator, hdfsBacked, fresh("past")).play(batches))
    assert(past.nonEmpty && !past.exists(_.matches(claim)), past)
    val inLog = Warnings.ofTheLogDuring(new Playing(operator, ours, fresh("in-log")).play(batches))
    assert(inLog.count(_.matches(claim)) == batches.size, inLog)
  }
}
