package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.hadoop.conf.Configuration

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.Utils

/** Spark's provider of RocksDB stores as it makes their databases, in a form that no line of Spark changes. */
private[dstl] abstract class ProviderOfLine extends RocksDBStateStoreProvider {

  // Spark keeps them to itself, and makes the database within `init`.
  private var initialized: () => RocksDB = () => throw new IllegalStateException("The store is not initialized yet")

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
    initialized = () => {
      // As Spark names a store in its logs.
      val name = s"StateStoreId(opId=${stateStoreId.operatorId},partId=${stateStoreId.partitionId}," +
        s"name=${stateStoreId.storeName})"
      val local = Utils.getLocalDir(Option(SparkEnv.get).fold(new SparkConf)(_.conf))
      newRocksDB(NewRocksDB(
        stateStoreId.storeCheckpointLocation().toString,
        RocksDBConf(storeConf),
        Utils.createTempDir(local, name),
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

  override private[sql] lazy val rocksDB: RocksDB = initialized()
}
