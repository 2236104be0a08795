// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.file.{Files, NoSuchFileException, Path => LocalPath}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{CommitEntry, EntryInspection, LogFileIndex, LogLayout}
import sparkdstl.log.storage.ObjectTail

/** The contents of a checkpoint's commit entries. */
object LoggedBatches {

  /** The batches whose entries carry state. */
  def of(checkpoint: LocalPath): Set[Long] =
    entries(checkpoint).filter(batch => index(checkpoint, batch).exists(_.entries.nonEmpty)).toSet

  /** All batches that have an entry, in ascending order. */
  def entries(checkpoint: LocalPath): Seq[Long] = {
    val commits = checkpoint.resolve("commits")
    if (!Files.exists(commits)) Nil
    else {
      val files = Files.list(commits)
      try files.iterator.asScala.flatMap(file => LogLayout.parseBatch(file.getFileName.toString)).toSeq.sorted
      finally files.close()
    }
  }

  /** The index of an entry; None if stock Spark wrote it. */
  def index(checkpoint: LocalPath, batch: Long): Option[LogFileIndex] = placed(checkpoint, batch).map(_._1)

  /**
   * The indexes of all entries, in ascending order of batches. An entry that a running query deletes meanwhile is left
   * out.
   */
  def indexes(checkpoint: LocalPath): Seq[LogFileIndex] = entries(checkpoint).flatMap { batch =>
    try index(checkpoint, batch)
    catch { case _: NoSuchFileException => None }
  }

  /** The index of an entry, with the offset in the entry from which its parts' places are counted. */
  def placed(checkpoint: LocalPath, batch: Long): Option[(LogFileIndex, Long)] = {
    val file = checkpoint.resolve(s"commits/$batch")
    val bytes = Files.readAllBytes(file)
    CommitEntry.inspect(new Path(file.toString), ObjectTail(bytes, bytes.length.toLong)) match {
      case EntryInspection.Whole(index, logStart) => Some((index, logStart))
      case _ => None
    }
  }
}
