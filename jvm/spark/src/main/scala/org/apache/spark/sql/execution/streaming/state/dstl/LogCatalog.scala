package org.apache.spark.sql.execution.streaming.state.dstl

import scala.collection.mutable

import sparkdstl.log.format.{LogFileIndex, SegmentKey}

/**
 * Which committed segments are still wanted and which log files that keeps alive: the reference counts of truncation.
 * Thread-safe.
 */
private[dstl] final class LogCatalog {
  private case class Listed(segment: ListedSegment, files: Set[String], batch: Long)

  // All guarded by this.
  private val stores = mutable.HashMap.empty[String, mutable.TreeMap[String, (SegmentKey, Listed)]]
  private val references = mutable.HashMap.empty[String, Int]
  private val batches = mutable.TreeMap.empty[Long, Int]

  /**
   * Adds the segments of a committed batch log.
   *
   * @param file the batch log, relative to the base path
   */
  def add(file: String, index: LogFileIndex, modifiedAtMs: Long): Unit = synchronized {
    val batch = index.batch.get
    index.entries.foreach { entry =>
      val files = entry.parts.iterator.flatMap(_.file).toSet + file
      val listed = Listed(ListedSegment(entry.key.fileName, entry.length, modifiedAtMs), files, batch)
      val store = stores.getOrElseUpdate(entry.key.storeDirectory, mutable.TreeMap.empty)
      if (store.put(entry.key.fileName, (entry.key, listed)).isEmpty) {
        files.foreach(name => references.updateWith(name)(count => Some(count.getOrElse(0) + 1)))
        batches.updateWith(batch)(count => Some(count.getOrElse(0) + 1)): Unit
      }
    }
  }

  /** The segments of a store, as Spark would find them by listing the store's directory. */
  def list(storeDirectory: String): Seq[ListedSegment] = synchronized {
    stores.get(storeDirectory).toSeq.flatMap(_.valuesIterator.map(_._2.segment))
  }

  /**
   * Drops a segment: nobody will read it again.
   *
   * @return `None` if it is not in the log; otherwise the files that no other segment needs
   */
  def release(key: SegmentKey): Option[Seq[String]] = synchronized {
    stores.get(key.storeDirectory).flatMap(_.remove(key.fileName)).map { case (_, listed) =>
      decrement(batches, listed.batch): Unit
      listed.files.toSeq.filter(decrement(references, _))
    }
  }

  /** Whether a wanted segment needs this file. */
  def isReferenced(file: String): Boolean = synchronized(references.contains(file))

  /** The oldest batch that has a wanted segment. */
  def oldestBatch: Option[Long] = synchronized(batches.headOption.map(_._1))

  /** Log files that wanted segments need. */
  def size: Int = synchronized(references.size)

  /** Counts down; true when that was the last reference. */
  private def decrement[K](counts: mutable.Map[K, Int], key: K): Boolean =
    counts.updateWith(key)(_.map(_ - 1).filter(_ > 0)).isEmpty
}
