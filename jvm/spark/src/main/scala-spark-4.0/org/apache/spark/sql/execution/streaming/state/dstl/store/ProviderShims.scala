package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** Spark's provider of RocksDB stores as it makes their databases. */
private[dstl] abstract class ProviderShims extends LazyDatabase {

  /** Makes the store's database. */
  protected def newRocksDB(of: NewRocksDB): RocksDB

  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useColumnFamilies: Boolean,
      storeConf: StateStoreConf,
      hadoopConf: Configuration,
      useMultipleValuesPerKey: Boolean,
      stateSchemaProvider: Option[StateSchemaProvider]
  ): Unit = {
    makeWith(stateStoreId) { (name, local) =>
      newRocksDB(NewRocksDB(
        stateStoreId.storeCheckpointLocation().toString,
        RocksDBConf(storeConf),
        local,
        hadoopConf,
        name,
        useColumnFamilies,
        storeConf.enableStateStoreCheckpointIds,
        stateStoreId.partitionId,
        ToldOfStore()
      ))
    }
    super.init(
      stateStoreId,
      keySchema,
      valueSchema,
      keyStateEncoderSpec,
      useColumnFamilies,
      storeConf,
      hadoopConf,
      useMultipleValuesPerKey,
      stateSchemaProvider
    )
  }
}
