// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import java.nio.charset.StandardCharsets.UTF_8

/**
 * The two lines of a commit entry as Spark writes them. The watermark holds the number of the intent, whatever the log adds to
 * the entry.
 */
object CommitContent {
  private val Watermark = """"nextBatchWatermarkMs":(\d+)""".r.unanchored

  /** @param ids by store directory; empty in format version 1 */
  def encode(intent: Long, ids: Map[String, String]): Array[Byte] = {
    val line =
      if (ids.isEmpty) s"""{"nextBatchWatermarkMs":$intent}"""
      else s"""{"nextBatchWatermarkMs":$intent,"stateUniqueIds":{"0":${partitions(ids)}}}"""
    s"v${if (ids.isEmpty) 1 else 2}\n$line".getBytes(UTF_8)
  }

  def intentOf(entry: Array[Byte]): Option[Long] = secondLine(entry) match {
    case Watermark(number) => Some(number.toLong)
    case _ => None
  }

  /** The first two lines of an entry. */
  def lines(entry: Array[Byte]): Array[Byte] = {
    val second = entry.indexOf('\n'.toByte, entry.indexOf('\n'.toByte) + 1)
    if (second < 0) entry else entry.take(second)
  }

  /** The checkpoint ids of stores in the order of their names. */
  def idsOf(entry: Array[Byte], stores: Vector[String]): Map[String, String] = {
    val json = secondLine(entry)
    val at = json.indexOf("stateUniqueIds")
    if (at < 0) Map.empty
    else {
      val ids = """"([0-9a-f-]{36})"""".r.findAllMatchIn(json.drop(at)).map(_.group(1)).toVector
      stores.sortBy(store => (StoreNames.partitionOf(store), store)).zip(ids).toMap
    }
  }

  private def partitions(ids: Map[String, String]): String =
    ids.toVector
      .groupBy { case (store, _) => StoreNames.partitionOf(store) }
      .toVector
      .sortBy(_._1)
      .map { case (_, stores) => stores.sortBy(_._1).map { case (_, id) => s""""$id"""" }.mkString("[", ",", "]") }
      .mkString("[", ",", "]")

  private def secondLine(entry: Array[Byte]): String = {
    val first = entry.indexOf('\n'.toByte)
    val second = entry.indexOf('\n'.toByte, first + 1)
    new String(entry, first + 1, (if (second < 0) entry.length else second) - first - 1, UTF_8)
  }
}

/** The directories of a query's stores. */
object StoreNames {
  def directory(partition: Int, store: Int, storesPerTask: Int): String =
    if (storesPerTask == 1) s"0/$partition" else s"0/$partition/side$store"

  def partitionOf(directory: String): Int = directory.split('/')(1).toInt

  /** The name within the partition; empty for Spark's default store. */
  def nameOf(directory: String): String = directory.split('/').drop(2).mkString("/")
}
