package org.apache.spark.sql.execution.streaming.state.dstl

import scala.collection.mutable

import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreProvider, StateStoreProviderId}

/** The state stores that this process has open. */
object StateStores {

  /**
   * Has each store do now what Spark's maintenance does from time to time. That of Spark is best left a long interval beside
   * this: while a query stops, it and whoever closes all stores wait for each other, for five minutes.
   */
  def maintain(): Unit = {
    val field = StateStore.getClass.getDeclaredField("loadedProviders")
    field.setAccessible(true)
    val loaded = field.get(StateStore).asInstanceOf[mutable.HashMap[StateStoreProviderId, StateStoreProvider]]
    loaded.synchronized(loaded.values.toVector).foreach(_.doMaintenance())
  }

  /** Snapshots that were uploaded, of all queries of this process: the next seals of their stores carry them. */
  def uploadedSnapshots: Long = DstlEnvironment.get.resources.materializations.uploaded.value

  /** Closes them; who needs one afterwards loads it again, with what is configured then. */
  def close(): Unit = StateStore.stop()
}
