// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.execution.streaming.state.dstl.{QuerySuite, StateStores}

/** In checkpoint format 2, attempts of one batch make the same version with different ids. */
class CheckpointIdsSuite extends QuerySuite {
  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.sql.shuffle.partitions" -> "1",
    "spark.sql.streaming.stateStore.checkpointFormatVersion" -> "2"
  )

  test("local state is the wanted version only if its id is the wanted one") {
    val input = numbers()
    val query = start(counts(input), "ids")
    try {
      feed(query, input, 0 until 10)
      val database = StateStores.loaded.collect { case provider: RocksDBStateStoreProvider => provider.rocksDB }
        .collectFirst { case database: DstlRocksDB => database }.get
      assert(database.attempts.of(1).nonEmpty)
      intercept[Exception](database.load(1, Some("another-attempt")))
      assert(database.attempts.of(1).isEmpty, "the state that would be there is another attempt's")
    } finally query.stop()
  }
}
