package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state.RocksDBConf

/**
 * What Spark makes the database of a store with, by the names that it has for these.
 *
 * @param told what else a line of Spark tells of a store
 */
private[dstl] final case class NewRocksDB(
    dfsRootDir: String,
    conf: RocksDBConf,
    localRootDir: File,
    hadoopConf: Configuration,
    loggingId: String,
    useColumnFamilies: Boolean,
    enableStateStoreCheckpointIds: Boolean,
    partitionId: Int,
    told: ToldOfStore
)
