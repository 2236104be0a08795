// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.nio.file.Files

import org.apache.spark.sql.execution.streaming.state.dstl.{QuerySuite, SparkFacts, StateStores}

/** Snapshots of stores whose state is not in the log: Spark's own. */
class PlainSnapshotsSuite extends QuerySuite {
  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    option("enabled") -> "false",
    "spark.sql.shuffle.partitions" -> "1",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1",
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h"
  )

  private def ofStore(suffix: String): Seq[String] = files(checkpoint).filter(_.matches(s"state/0/0/.*$suffix"))

  test(
    "while the log is off, Spark's maintenance uploads the newest snapshot, with files that old snapshots do not share"
  ) {
    val input = numbers()
    val query = start(counts(input), "plain")
    try {
      feed(query, input, 0 until 10)
      StateStores.maintain()
      assert(ofStore("zip") == Seq("state/0/0/1.zip"))
      val shared = ofStore("sst").head.takeWhile(_ != '-')
      (0 to 1).foreach(_ => feed(query, input, Seq(0)))
      // As another executor would have uploaded it long after: Spark deletes the files of snapshots that are older.
      Files.copy(checkpoint.resolve("state/0/0/1.zip"), checkpoint.resolve("state/0/0/1000.zip"))
      StateStores.maintain()
      assert(ofStore("zip").toSet == Set("state/0/0/1.zip", "state/0/0/3.zip", "state/0/0/1000.zip"))
      assert(
        ofStore("sst").count(_.startsWith(shared)) == (if (SparkFacts.ReplacesStaleFiles) 2 else 1),
        ofStore("sst")
      )
    } finally query.stop()
  }

  // Spark maintains a store that it unloads on the thread of its task.
  if (SparkFacts.UnloadsOnCommit)
    test("while the log is off, stores that are unloaded after each batch have snapshots") {
      configure("spark.sql.streaming.stateStore.unloadOnCommit" -> "true")
      val input = numbers()
      val query = start(counts(input), "unloaded")
      try {
        (0 to 2).foreach(_ => feed(query, input, 0 until 10))
        assert(ofStore("zip").toSet == Set("state/0/0/1.zip", "state/0/0/2.zip", "state/0/0/3.zip"))
      } finally query.stop()
    }
}
