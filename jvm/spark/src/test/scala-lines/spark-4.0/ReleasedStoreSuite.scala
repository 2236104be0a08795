// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.nio.file.Files
import java.util.concurrent.Executors

import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.DurationInt

import org.apache.hadoop.conf.Configuration
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.testing.TemporaryDirectory

import org.apache.spark.sql.execution.streaming.state.{RocksDBConf, StateStoreConf}
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.internal.SQLConf

class ReleasedStoreSuite extends AnyFunSuite {
  private val take = (store: DstlRocksDB) => store.lockForLoad()
  private val load = (store: DstlRocksDB) => store.load(0): Unit
  private val nothing = (_: DstlRocksDB) => ()

  for ((does, within, afterwards) <- Seq(("has", take, load), ("has loaded", load, nothing)))
    test(s"a commit neither waits for an attempt that $does the released store nor changes its schedule") {
      TemporaryDirectory.within { root =>
        val settings = new SQLConf
        settings.setConfString("spark.sql.streaming.stateStore.minDeltasForSnapshot", "1")
        settings.setConfString("spark.sql.streaming.stateStore.rocksdb.lockAcquireTimeoutMs", "1")
        val conf = RocksDBConf(new StateStoreConf(settings)).copy(enableChangelogCheckpointing = true)
        val local = Files.createDirectories(root.toPath.resolve("local")).toFile
        val made = RocksDBArguments(
          root.toPath.resolve("state/0/0").toString,
          conf,
          local,
          new Configuration,
          "store",
          useColumnFamilies = false,
          enableStateStoreCheckpointIds = false,
          partitionId = 0,
          LaterArguments()
        )
        val store = new DstlRocksDB(made, LogOptions.default, DstlEnvironment.get.resources, None)
        val thread = Executors.newSingleThreadExecutor()
        def other[A](body: => A): A = Await.result(Future(body)(ExecutionContext.fromExecutor(thread)), 60.seconds)
        try {
          store.load(0)
          store.committing(isAsked = false) { _ =>
            val directory = Files.createDirectories(local.toPath.resolve("checkpoint")).toFile
            store.uploadSnapshot(RocksDBSnapshot(directory, 1, 0, 0, Map.empty, 0, "", Map.empty, None))
            // Releases the store.
            store.rollback()
            other(within(store))
            (1, null)
          }
          other(afterwards(store))
          var isDue = false
          other(store.committing(isAsked = false) { isWanted =>
            isDue = isWanted
            (1, null)
          })
          assert(isDue)
        } finally {
          other(store.close())
          thread.shutdown()
        }
      }
    }
}
