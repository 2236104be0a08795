package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.hadoop.conf.Configuration

import org.apache.spark.SparkException
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.dstl.transport.Rpc

/** Spark's provider of RocksDB stores as it makes their databases. */
private[dstl] abstract class ProviderShims extends RocksDBStateStoreProvider {

  /** Makes the store's database. */
  protected def newRocksDB(of: NewRocksDB): RocksDB

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
  ): RocksDB = newRocksDB(NewRocksDB(
    dfsRootDir,
    conf,
    localRootDir,
    hadoopConf,
    loggingId,
    useColumnFamilies,
    enableStateStoreCheckpointIds,
    partitionId,
    ToldOfStore(
      eventForwarder.map(forwarder => new LenientEventForwarder(forwarder.queryRunId, forwarder.stateStoreId)),
      uniqueId
    )
  ))
}

/**
 * Reports snapshot uploads to Spark's coordinator where there is one. In a session that has never started a query there is
 * none, and reading state must not fail for want of somebody to report to.
 */
private[store] final class LenientEventForwarder(runId: String, storeId: StateStoreId)
    extends RocksDBEventForwarder(runId, storeId) {

  override def reportSnapshotUploaded(version: Long): Unit =
    try super.reportSnapshotUploaded(version)
    catch { case e: SparkException if Rpc.meansNoEndpoint(e) => }
}
