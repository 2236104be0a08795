// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.testing.TemporaryDirectory

import org.apache.spark.sql.execution.streaming.state.{RocksDBConf, StateStoreConf}
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.internal.SQLConf

class PackedSnapshotsSuite extends AnyFunSuite {

  /** Packs a snapshot that consists of an empty file, as often as `use` asks for it. */
  private def packing(verifies: Boolean)(use: (() => Array[Byte]) => Any): Any =
    TemporaryDirectory.within { root =>
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
      val files = new SnapshotFiles(new Path(store.toUri), made.hadoopConf, LogOptions.default, resources, None)
      val manager = new DstlRocksDBFileManager(made, local.toFile, LogOptions.default, files, resources, None)
      val checkpoint = Files.createDirectories(local.resolve("checkpoint"))
      Files.createFile(checkpoint.resolve("CURRENT"))
      use(() => manager.pack(RocksDBSnapshot(checkpoint.toFile, 1, 0, 0, Map.empty, 0, "", Map.empty, None)))
    }

  test("an empty file of RocksDB is refused if Spark would refuse it") {
    packing(verifies = true)(packed => assert(intercept[Exception](packed()).getMessage.contains("CURRENT")))
  }

  test("a snapshot whose upload has failed is packed again") {
    packing(verifies = false)(packed => assert(packed().length == packed().length))
  }
}
