// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.EntryPoints
import org.apache.spark.sql.internal.SQLConf

/**
 * The settings with which a batch's state is read or written: the given ones, overridden by those that the batch's offsets
 * record.
 *
 * @param settings of Spark, among them `spark.hadoop.` for the storage
 */
private[tools] final class GivenSettings(settings: Map[String, String]) {

  /** The storage's configuration. */
  val hadoop: Configuration = StorageSettings.of(settings)

  /** The path with the scheme of its file system. */
  def qualified(root: String): String = {
    val path = new Path(root)
    path.getFileSystem(hadoop).makeQualified(path).toString
  }

  /** For reading: the file manager and this project's provider write nothing. */
  def reading(batch: StateBatch): SQLConf = {
    val conf = of(batch)
    conf.setConfString(EntryPoints.FileManagerClass, classOf[ReadOnlyFileManager].getName)
    if (conf.stateStoreProviderClass == EntryPoints.Provider)
      conf.setConfString(SQLConf.STATE_STORE_PROVIDER_CLASS.key, classOf[ReadOnlyStateStoreProvider].getName)
    // Counting rows takes a lookup for each replayed change.
    orAsGiven(conf, "trackTotalNumberOfRows", "false")
    conf
  }

  /** For reading what stock Spark's RocksDB provider has written, whatever the log has. */
  def readingPlain(batch: StateBatch): SQLConf = withStockProvider(reading(batch))

  /** For a copy of the state in this process: Spark bounds the memory of stores only if it is configured to. */
  def copying(batch: StateBatch): SQLConf = {
    val conf = reading(batch)
    orAsGiven(conf, "boundedMemoryUsage", "true")
    conf
  }

  /** For writing with stock Spark's RocksDB provider and its own files, outside of any application. */
  def writing(batch: StateBatch): SQLConf = withStockProvider(of(batch))

  /** A checkpoint that is read or written with settings. */
  def at(root: String, conf: SQLConf): StateAt = new StateAt(root, conf, this)

  /** The storage's configuration, with these settings as a task has them. */
  def hadoopWith(conf: SQLConf): Configuration = {
    val copy = new Configuration(hadoop)
    conf.getAllConfs.foreach { case (key, value) => if (value != null) copy.set(key, value) }
    copy
  }

  /** Sets an option of RocksDB that is not among the given settings. */
  private def orAsGiven(conf: SQLConf, option: String, value: String): Unit = {
    val key = s"spark.sql.streaming.stateStore.rocksdb.$option"
    if (!settings.contains(key)) conf.setConfString(key, value)
  }

  private def withStockProvider(conf: SQLConf): SQLConf = {
    conf.setConfString(SQLConf.STATE_STORE_PROVIDER_CLASS.key, classOf[RocksDBStateStoreProvider].getName)
    conf
  }

  private def of(batch: StateBatch): SQLConf = {
    val conf = new SQLConf
    settings.foreach { case (key, value) => if (key.startsWith("spark.sql.")) conf.setConfString(key, value) }
    val recorded = SparkFiles.reading(s"offsets/${batch.number}")(OffsetSeqMetadata(batch.offsetsMetadata))
    OffsetSeqMetadata.setSessionConf(recorded, conf)
    // Spark 4.2 sets an internal option instead.
    recorded.conf.get(SQLConf.SHUFFLE_PARTITIONS.key).foreach(conf.setConfString(SQLConf.SHUFFLE_PARTITIONS.key, _))
    conf.setConfString(SQLConf.SESSION_LOCAL_TIMEZONE.key, "UTC")
    // Spark's provider finds snapshots in plain files only, this project's in commit entries first.
    conf.setConfString(EntryPoints.ChangelogCheckpointing, "true")
    if (batch.hasIds) conf.setConfString(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key, "2")
    conf
  }
}

/** A checkpoint, and the settings with which it is read or written. */
private[tools] final class StateAt(val root: String, val settings: SQLConf, all: GivenSettings) {

  /** The storage's configuration with these settings: a copy for one provider, which adds to it. */
  def hadoop: Configuration = all.hadoopWith(settings)

  def state: Path = new Path(root, "state")
}
