// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import scala.collection.mutable

import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreProvider, StateStoreProviderId}

/** The state stores that this process has open. */
object StateStores {

  /**
   * Runs Spark's maintenance of each store now. Give Spark's own maintenance a long interval in a test that calls this: while a
   * query stops, that and the thread that closes all stores wait for each other, for five minutes.
   */
  def maintain(): Unit = loaded.foreach(StoreMaintenance.run)

  /** The providers of the stores that are loaded. */
  def loaded: Seq[StateStoreProvider] = {
    val field = StateStore.getClass.getDeclaredField("loadedProviders")
    field.setAccessible(true)
    val providers = field.get(StateStore).asInstanceOf[mutable.HashMap[StateStoreProviderId, StateStoreProvider]]
    providers.synchronized(providers.values.toVector)
  }

  /** Whether a thread waits for Spark's lock of a store. */
  def isAwaited: Boolean = Thread.getAllStackTraces.values.stream.anyMatch { frames =>
    frames.exists(at =>
      at.getClassName.contains("streaming.state.RocksDB") && at.getMethodName.matches("acquire.*|awaitNotLocked.*")
    )
  }

  /** Snapshots that were uploaded, of all queries of this process: the next seals of their stores carry them. */
  def uploadedSnapshots: Long = DstlEnvironment.get.resources.materializations.uploaded.value

  /** Closes them; a later use loads the store again, with its configuration. */
  def close(): Unit = StateStore.stop()
}
