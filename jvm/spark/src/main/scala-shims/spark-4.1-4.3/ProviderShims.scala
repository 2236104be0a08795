// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.hadoop.conf.Configuration

import org.apache.spark.SparkException
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.dstl.transport.Rpc

/** The methods by which Spark's provider of RocksDB stores creates their databases. */
private[dstl] abstract class ProviderShims extends RocksDBStateStoreProvider {

  /** Makes the store's database. */
  protected def newRocksDB(of: RocksDBArguments): RocksDB

  /** Called before Spark initializes the provider; earlier lines make the database here. */
  protected def beforeInit(id: StateStoreId, families: Boolean, store: StateStoreConf, hadoop: Configuration): Unit = ()

  override protected def createRocksDB(
      dfsRootDir: String,
      conf: RocksDBConf,
      localRootDir: File,
      hadoopConf: Configuration,
      loggingId: String,
      useColumnFamilies: Boolean,
      enableStateStoreCheckpointIds: Boolean,
      partitionId: Int,
      eventForwarder: Option[RocksDBEventForwarder],
      uniqueId: Option[String]
  ): RocksDB = newRocksDB(RocksDBArguments(
    dfsRootDir,
    conf,
    localRootDir,
    hadoopConf,
    loggingId,
    useColumnFamilies,
    enableStateStoreCheckpointIds,
    partitionId,
    LaterArguments(
      eventForwarder.map(forwarder => new LenientEventForwarder(forwarder.queryRunId, forwarder.stateStoreId)),
      uniqueId
    )
  ))
}

/**
 * Reports snapshot uploads to Spark's coordinator, if there is one. A session that has never started a query has none, and can
 * still read state.
 */
private[store] final class LenientEventForwarder(runId: String, storeId: StateStoreId)
    extends RocksDBEventForwarder(runId, storeId) {

  override def reportSnapshotUploaded(version: Long): Unit =
    try super.reportSnapshotUploaded(version)
    catch { case e: SparkException if Rpc.meansNoEndpoint(e) => }
}
