// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state.RocksDBConf

/**
 * The arguments with which Spark makes the database of a store, by Spark's names.
 *
 * @param later those that only later lines of Spark have
 */
private[dstl] final case class RocksDBArguments(
    dfsRootDir: String,
    conf: RocksDBConf,
    localRootDir: File,
    hadoopConf: Configuration,
    loggingId: String,
    useColumnFamilies: Boolean,
    enableStateStoreCheckpointIds: Boolean,
    partitionId: Int,
    later: LaterArguments
)
