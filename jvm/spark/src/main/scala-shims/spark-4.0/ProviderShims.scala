// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state._

/** The methods by which Spark's provider of RocksDB stores creates their databases. */
private[dstl] abstract class ProviderShims extends LazyDatabaseShims {

  /** Makes the store's database. */
  protected def newRocksDB(of: RocksDBArguments): RocksDB

  /** Called before Spark initializes the provider. */
  protected def beforeInit(
      id: StateStoreId,
      useColumnFamilies: Boolean,
      storeConf: StateStoreConf,
      hadoopConf: Configuration
  ): Unit =
    makeWith(id) { (name, local) =>
      newRocksDB(RocksDBArguments(
        id.storeCheckpointLocation().toString,
        RocksDBConf(storeConf),
        local,
        hadoopConf,
        name,
        useColumnFamilies,
        storeConf.enableStateStoreCheckpointIds,
        id.partitionId,
        LaterArguments()
      ))
    }
}
