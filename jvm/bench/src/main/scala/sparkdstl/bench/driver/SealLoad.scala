// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.driver

import java.util.{SplittableRandom, UUID}

import sparkdstl.log.format.{LogLayout, SegmentKey, SegmentKind, SegmentPart}
import sparkdstl.log.transport.{SealedPart, SealedSegment, ToDriver}

/**
 * The messages of a batch's tasks: a task's small segments are inline within its share of the budget, the others are
 * uploaded to data files.
 *
 * @param bytes
 *   of each store's changes
 * @param checkpointIds
 *   whether stores have checkpoint ids (checkpoint format version 2)
 */
final case class SealLoad(
    tasks: Int,
    bytes: Int,
    checkpointIds: Boolean,
    inlineShare: Long,
    maxInlineSegment: Long
) {
  import SealLoad._

  /** Of each task. */
  def stores: Int = StoreNames.size

  /** The number of a task's stores whose changes are inline. */
  val inlineStores: Int =
    if (bytes > maxInlineSegment) 0 else math.min(stores.toLong, inlineShare / tasks / math.max(1, bytes)).toInt

  def attempt(batch: Long, task: Int): Long = batch * tasks + task

  def executor(task: Int): String = (task % Executors + 1).toString

  def seal(batch: Long, task: Int): ToDriver.Seal = {
    val chance = new SplittableRandom(attempt(batch, task))
    val segments = Vector.tabulate(stores) { store =>
      val part =
        if (store < inlineStores) {
          val content = new Array[Byte](bytes)
          chance.nextBytes(content)
          SealedPart.Inline(content)
        } else SealedPart.Pending(ticket(batch, task, store), bytes.toLong)
      // Based on the attempt of the same task in the batch before.
      SealedSegment(key(batch, task, store), Option.when(batch > 0)(attempt(batch - 1, task)), Vector(part))
    }
    ToDriver.Seal(attempt(batch, task), batch, segments)
  }

  /** All of a batch, by executor. */
  def seals(batch: Long): Iterator[(String, ToDriver.Seal)] = (0 until tasks).iterator.map(task =>
    executor(task) -> seal(batch, task)
  )

  /** Finished snapshots of the version after batch 0, of some of a task's stores: a zip of `bytes`, and one uploaded file. */
  def snapshots(task: Int, of: Iterable[Int], bytes: Int): Vector[SealedSegment] = {
    val file = LogLayout.dataFile(1, Run, executor(task), task.toLong, "s")
    of.iterator.flatMap { store =>
      val zip = key(0, task, store).copy(kind = SegmentKind.Snapshot)
      val sst = zip.copy(qualifier = Some(s"$store"), kind = SegmentKind.SnapshotFile)
      Seq(
        SealedSegment(zip, None, Vector(SealedPart.Inline(new Array[Byte](bytes)))),
        SealedSegment(sst, None, Vector(SealedPart.Stored(SegmentPart(Some(file), 24L + store * 1000L, 1000, store))))
      )
    }.toVector
  }

  /** Reports of the uploads of segments that are not inline, a thousand a data file; by executor. */
  def uploaded(batch: Long): Vector[(String, ToDriver.Uploaded)] = (0 until tasks).groupBy(executor).toVector.flatMap {
    case (executor, own) =>
      own.flatMap(task => (inlineStores until stores).map(ticket(batch, task, _))).grouped(
        SegmentsOfFile
      ).zipWithIndex.map {
        case (tickets, number) =>
          val file = LogLayout.dataFile(1, Run, executor, batch * 1000 + number, "a")
          executor -> ToDriver.Uploaded(tickets.zipWithIndex.map { case (ticket, place) =>
            ticket -> Right(SegmentPart(Some(file), 24L + place.toLong * bytes, bytes, place))
          }.toVector)
      }
  }

  /** Spark's content of the commit entry. */
  def sparkEntry(batch: Long): Array[Byte] = {
    val ids =
      if (!checkpointIds) "null"
      else (0 until tasks)
        .map(task => (0 until stores).map(store => s"\"${id(batch, task, store)}\"").mkString("[", ",", "]"))
        .mkString("{\"0\":[", ",", "]}")
    s"""v${if (checkpointIds) 2 else 1}\n{"nextBatchWatermarkMs":0,"stateUniqueIds":$ids}""".getBytes("UTF-8")
  }

  def key(batch: Long, task: Int, store: Int): SegmentKey = SegmentKey(
    0,
    task,
    StoreNames(store),
    batch + 1,
    Option.when(checkpointIds)(id(batch, task, store)),
    SegmentKind.Changelog
  )

  private def ticket(batch: Long, task: Int, store: Int): Long = (batch * tasks + task) * stores + store

  private def id(batch: Long, task: Int, store: Int): String =
    new UUID(0x4000L | batch << 16, ticket(0, task, store) * 0x9e3779b97f4a7c15L).toString
}

object SealLoad {
  val Run: UUID = new UUID(1, 1)
  private val Executors = 10
  private val SegmentsOfFile = 1000

  /** Those of a stream-stream join. */
  private val StoreNames =
    Vector("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")
}
