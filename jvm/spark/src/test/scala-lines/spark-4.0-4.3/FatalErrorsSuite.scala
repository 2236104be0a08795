// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.testing.{TemporaryDirectory, UncaughtErrors}

import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot
import org.apache.spark.sql.execution.streaming.state.dstl.Patience
import org.apache.spark.sql.execution.streaming.state.dstl.files.LoggedStore
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{Checkpoint, ProcessResources}

class FatalErrorsSuite extends AnyFunSuite with Patience {

  /** The settings of a store whose snapshots end with this error. */
  private final class Failing(error: Throwable) extends Configuration(false) {
    @volatile var isFailing = false
    override def get(name: String): String = if (isFailing) throw error else super.get(name)
  }

  for (error <- Seq(new OutOfMemoryError("injected"), new NoClassDefFoundError("injected")))
    test(s"a store whose snapshot ended with a fatal error makes another, and Spark gets the error: $error") {
      TemporaryDirectory.within { root =>
        val resources = new ProcessResources(null)
        val settings = new Failing(error)
        val store = new LoggedStore(Checkpoint(new Path(root.toURI), settings, LogOptions.default), "0/0", null)
        settings.isFailing = true
        val snapshots =
          new Materialization("store", LogOptions.default, resources, throw new AssertionError, _ => ())
        try UncaughtErrors.during { uncaught =>
            val snapshot = RocksDBSnapshot(root, 1, 0, 0, Map.empty, 0, "", Map.empty, None)
            snapshots.begin(snapshot, store, snapshots.local)
            eventually(assert(uncaught().contains(error)))
            eventually(assert(!snapshots.isBusy && snapshots.isWantedAgain && !root.exists))
          }
        finally resources.close()
      }
    }
}
