// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.sql.execution.streaming.state.{RocksDB, RocksDBStateStoreProvider, StateStoreId}
import org.apache.spark.util.Utils

/** Spark's provider of RocksDB stores, in lines that create the database in a lazy value and have no method to override. */
private[dstl] abstract class LazyDatabaseShims extends RocksDBStateStoreProvider {
  @volatile private var made: () => RocksDB = () => throw new IllegalStateException("The store is not initialized yet")

  // Spark's own is lazy, and only a lazy value can override it.
  override private[sql] lazy val rocksDB: RocksDB = made()

  /** Creates the database with `make`, from its name in logs and its local directory. */
  protected def makeWith(id: StateStoreId)(make: (String, File) => RocksDB): Unit = made = () => {
    // As Spark names a store in its logs.
    val name = s"StateStoreId(opId=${id.operatorId},partId=${id.partitionId},name=${id.storeName})"
    make(name, Utils.createTempDir(Utils.getLocalDir(Option(SparkEnv.get).fold(new SparkConf)(_.conf)), name))
  }
}
