// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import sparkdstl.log.config.{LogOption, LogOptions}

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

  /** The log with these options. */
  private def logged(name: String, options: (LogOption[_], String)*): Contender =
    Contender(name, log ++ options.map { case (of, value) => LogOptions.Prefix + of.key -> value }, usesLog = true)

  val all: Seq[Contender] = Seq(
    // Discards changelogs: the cost of a batch without durable state.
    Contender("floor", stock + (fileManager -> classOf[DiscardingFileManager].getName)),
    logged("dstl"),
    logged("dstl-serial", LogOptions.OverlapOffsets -> "never"),
    logged("dstl-inline", LogOptions.InlineMaxSegmentSize -> "16m", LogOptions.InlineMaxBatchSize -> "512m"),
    logged("dstl-uploaded", LogOptions.InlineMaxSegmentSize -> "0"),
    // The log below Spark's own provider: real-time mode accepts no other.
    Contender("dstl-below", stock + (fileManager -> classOf[DstlCheckpointFileManager].getName), usesLog = true),
    // Each store that has changed starts a snapshot after the end of its last one, at most once a second.
    logged("dstl-snapshots", LogOptions.MaterializeInterval -> "1s"),
    logged("dstl-no-snapshots", LogOptions.MaterializeInterval -> "24h", LogOptions.MaterializeReplayCost -> "0"),
    Contender("direct", stock + (fileManager -> classOf[DirectWriteFileManager].getName)),
    Contender("default", stock)
  )

  /** @throws IllegalArgumentException naming the contenders that there are */
  def named(name: String): Contender = all.find(_.name == name).getOrElse(
    throw new IllegalArgumentException(s"no contender is named $name; there are ${all.map(_.name).mkString(", ")}")
  )
}
