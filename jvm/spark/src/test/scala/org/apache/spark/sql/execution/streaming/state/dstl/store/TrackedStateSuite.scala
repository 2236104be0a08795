// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path, UnsupportedFileSystemException}
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.log.read.StoreLoad

import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.state.dstl.files.LoggedStore
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{Checkpoint, ProcessResources}
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkerSide

class TrackedStateSuite extends AnyFunSuite {
  private class State extends TrackedState with Logging {
    override protected val resources = new ProcessResources(null)
    private val checkpoint = Checkpoint(new Path("nowhere://checkpoint"), new Configuration, LogOptions.default)
    override protected def store: Option[LoggedStore] =
      Some(new LoggedStore(checkpoint, "0/0", new WorkerSide(null, resources, isExecutor = false)))
    var local = 0L
    var isClosed = false
    def open(): Unit = register()

    def commit(version: Long, attempt: Long): Unit = {
      local = version
      attempts.remember(version, attempt)
    }

    def load(version: Long)(body: StoreLoad => Unit = _ => ()): StoreLoad =
      loadTracked("store", version, local == version) { local = -1 } { load =>
        body(load)
        local = version
        load
      }

    def close(): Unit = {
      isClosed = true
      resources.close()
    }
  }

  private def holds(name: String)(check: State => Any): Unit = test(name) {
    val state = new State
    try check(state)
    finally state.close()
  }

  holds("local state is used with the attempt that made it, unless that was dropped") { state =>
    state.commit(2, 7)
    val load = state.load(2)()
    assert(load.isLocal && load.base.contains(7L))
    state.drop(7L)
    val again = state.load(2)()
    assert(!again.isLocal && again.base.isEmpty)
  }

  holds("a database that cannot be registered with its run is closed: Spark does not have it yet") { state =>
    intercept[UnsupportedFileSystemException](state.open())
    assert(state.isClosed)
  }

  holds("a load that fails before it has changed anything leaves no local state without its attempt") { state =>
    state.commit(2, 7)
    intercept[IllegalStateException](state.load(1)(_ => throw new IllegalStateException("the driver does not answer")))
    assert(!state.load(2)().isLocal)
  }
}
