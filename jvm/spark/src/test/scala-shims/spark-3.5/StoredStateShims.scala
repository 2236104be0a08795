// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.streaming.CommitLog
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.dstl.transport.QueryShims
import org.apache.spark.sql.types.StructType

/**
 * The state in a checkpoint, as another application reads it. This Spark has no data source for state, so stores are opened as by a
 * task, and the rows are their bytes.
 */
object StoredStateShims {

  /** @param options those of the state data source: `operatorId` and `batchId`; all stores of an operator are read */
  def read(session: SparkSession, checkpoint: String, options: Map[String, String]): Seq[String] = {
    val operator = options.getOrElse("operatorId", "0").toLong
    val batch = options.get("batchId").map(_.toLong)
      .orElse(new CommitLog(session, new Path(checkpoint, "commits").toString).getLatestBatchId())
      .getOrElse(throw new IllegalArgumentException(s"nothing is committed in $checkpoint"))
    val root = new Path(new Path(checkpoint, "state").toString)
    val rows = for {
      name <- storesIn(session, new Path(new Path(root, operator.toString), "0"))
      partition <- 0 until session.sessionState.conf.numShufflePartitions
      row <- contentIfThere(session, StateStoreId(root.toString, operator, partition, name), batch + 1)
    } yield row
    rows.sorted
  }

  /** Some operators have one partition only. A lost store looks the same; the comparison with stock Spark shows it. */
  private def contentIfThere(session: SparkSession, id: StateStoreId, version: Long): Seq[String] =
    try content(session, id, version)
    catch {
      case missing: Exception
          if id.partitionId > 0 && Seq("does not exist", "its log lacks").exists(missing.getMessage.contains(_)) => Nil
    }

  /** Spark writes each store's schema below the first partition. */
  private def storesIn(session: SparkSession, directory: Path): Seq[String] = {
    val files = directory.getFileSystem(session.sessionState.newHadoopConf())
    def hasSchema(in: Path) = files.exists(new Path(in, "_metadata/schema"))
    val named =
      files.listStatus(directory).toVector.filter(_.isDirectory).map(_.getPath).filter(hasSchema).map(_.getName)
    if (hasSchema(directory)) named :+ StateStoreId.DEFAULT_STORE_NAME else named
  }

  private def content(session: SparkSession, id: StateStoreId, version: Long): Seq[String] = {
    // The columns of rows are not compared.
    val anything = new StructType().add("anything", "long").add("else", "long")
    val run = UUID.randomUUID()
    val hadoop = session.sessionState.newHadoopConf()
    // A new session, which has no cached state of the checkpoint.
    hadoop.set(QueryShims.RunProperty, run.toString)
    val provider = StateStoreProvider.createAndInit(
      StateStoreProviderId(id, run),
      anything,
      anything,
      0,
      StateStoreConf(session.sessionState.conf),
      hadoop
    )
    try provider match {
        case rocks: RocksDBStateStoreProvider =>
          val loaded = rocks.rocksDB.load(version, readOnly = true)
          try loaded.iterator().map(pair => rendered(id, pair.key, pair.value)).toVector
          finally loaded.rollback()
        case other => other.getReadStore(version).iterator()
            .map(pair => rendered(id, pair.key.getBytes, pair.value.getBytes)).toVector
      }
    finally provider.close()
  }

  private def rendered(id: StateStoreId, key: Array[Byte], value: Array[Byte]): String =
    s"${id.storeName} ${id.partitionId} ${hex(key)} ${hex(value)}"

  private def hex(bytes: Array[Byte]): String = bytes.map(byte => f"$byte%02x").mkString
}
