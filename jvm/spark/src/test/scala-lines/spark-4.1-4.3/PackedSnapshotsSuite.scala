// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.TemporaryDirectory

import org.apache.spark.sql.execution.streaming.state.{RocksDBConf, StateStoreConf}
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.internal.SQLConf

class PackedSnapshotsSuite extends AnyFunSuite {
  for (verifies <- Seq(true, false))
    test(s"an empty file of RocksDB is refused if Spark would refuse it: $verifies")(TemporaryDirectory.within { root =>
      val settings = new SQLConf
      settings.setConfString("spark.sql.streaming.stateStore.rocksdb.verifyNonEmptyFilesInZip", verifies.toString)
      val store = root.toPath.resolve("state/0/0")
      val local = Files.createDirectories(root.toPath.resolve("local"))
      val made = RocksDBArguments(
        store.toString,
        RocksDBConf(new StateStoreConf(settings)),
        local.toFile,
        new Configuration,
        "store",
        useColumnFamilies = false,
        enableStateStoreCheckpointIds = false,
        partitionId = 0,
        LaterArguments(None, None)
      )
      val resources = DstlEnvironment.get.resources
      val files = new SnapshotFiles(new Path(store.toUri), made.hadoopConf, resources, None)
      val manager = new DstlRocksDBFileManager(made, local.toFile, files, resources, None)
      val checkpoint = Files.createDirectories(local.resolve("checkpoint"))
      Files.createFile(checkpoint.resolve("CURRENT"))
      def packed() = manager.pack(RocksDBSnapshot(checkpoint.toFile, 1, 0, 0, Map.empty, 0, "", Map.empty, None))
      if (verifies) assert(intercept[Exception](packed()).getMessage.contains("CURRENT")) else assert(packed().nonEmpty)
    })
}
