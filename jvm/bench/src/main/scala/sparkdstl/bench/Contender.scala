// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import sparkdstl.log.config.LogOptions

import org.apache.spark.sql.execution.streaming.state.dstl._

/** A way to keep state. */
final case class Contender(name: String, configuration: Map[String, String], usesLog: Boolean = false)

object Contender {
  private val state = "org.apache.spark.sql.execution.streaming.state"
  private val provider = "spark.sql.streaming.stateStore.providerClass"
  private val fileManager = "spark.sql.streaming.checkpointFileManagerClass"

  private val stock = Map(
    provider -> s"$state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled" -> "true"
  )

  private val log = Map(
    provider -> s"$state.dstl.DstlStateStoreProvider",
    fileManager -> classOf[DstlCheckpointFileManager].getName
  )

  val all: Seq[Contender] = Seq(
    // Discards changelogs: the cost of a batch without durable state.
    Contender("floor", stock + (fileManager -> classOf[DiscardingFileManager].getName)),
    Contender("dstl", log, usesLog = true),
    Contender("dstl-serial", log + (LogOptions.Prefix + LogOptions.OverlapOffsets.key -> "never"), usesLog = true),
    Contender(
      "dstl-inline",
      log + (LogOptions.Prefix + LogOptions.InlineMaxSegmentSize.key -> "16m") +
        (LogOptions.Prefix + LogOptions.InlineMaxBatchSize.key -> "512m"),
      usesLog = true
    ),
    Contender("dstl-uploaded", log + (LogOptions.Prefix + LogOptions.InlineMaxSegmentSize.key -> "0"), usesLog = true),
    // The log below Spark's own provider: real-time mode accepts no other.
    Contender("dstl-below", stock + (fileManager -> classOf[DstlCheckpointFileManager].getName), usesLog = true),
    // Each store that has changed starts a snapshot after the end of its last one, at most once a second.
    Contender("dstl-snapshots", log + (LogOptions.Prefix + LogOptions.MaterializeInterval.key -> "1s"), usesLog = true),
    Contender(
      "dstl-no-snapshots",
      log + (LogOptions.Prefix + LogOptions.MaterializeInterval.key -> "24h") +
        (LogOptions.Prefix + LogOptions.MaterializeReplayCost.key -> "0"),
      usesLog = true
    ),
    Contender("direct", stock + (fileManager -> classOf[DirectWriteFileManager].getName)),
    Contender("default", stock)
  )

  /** @throws IllegalArgumentException naming the contenders that there are */
  def named(name: String): Contender = all.find(_.name == name).getOrElse(
    throw new IllegalArgumentException(s"no contender is named $name; there are ${all.map(_.name).mkString(", ")}")
  )
}
