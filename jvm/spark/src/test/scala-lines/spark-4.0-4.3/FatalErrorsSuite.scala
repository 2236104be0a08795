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

  private def failing(error: Throwable)(check: (Materialization, ProcessResources, () => Seq[Throwable]) => Any): Any =
    TemporaryDirectory.within { root =>
      val resources = new ProcessResources(null)
      val settings = new Failing(error)
      val store = new LoggedStore(Checkpoint(new Path(root.toURI), settings, LogOptions.default), "0/0", null)
      settings.isFailing = true
      val snapshots = new Materialization("store", LogOptions.default, resources, throw new AssertionError, _ => ())
      try UncaughtErrors.during { uncaught =>
          snapshots.begin(RocksDBSnapshot(root, 1, 0, 0, Map.empty, 0, "", Map.empty, None), store, snapshots.local)
          check(snapshots, resources, uncaught)
        }
      finally resources.close()
    }

  test("a store whose snapshot ended without memory makes another, and Spark gets the error") {
    val error = new OutOfMemoryError("injected")
    failing(error) { (snapshots, _, uncaught) =>
      eventually(assert(uncaught().contains(error)))
      eventually(assert(!snapshots.isBusy && snapshots.isWantedAgain))
    }
  }

  test("a snapshot for which a class is missing fails as with any other error") {
    val error = new NoClassDefFoundError("injected")
    failing(error) { (_, resources, uncaught) =>
      eventually(assert(resources.materializations.failed.value == 1))
      assert(!uncaught().contains(error))
    }
  }
}
