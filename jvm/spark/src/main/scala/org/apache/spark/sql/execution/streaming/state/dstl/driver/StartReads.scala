// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import scala.concurrent.{ExecutionContext, Future}
import scala.util.Success

import org.apache.hadoop.fs.{FileStatus, Path}

import sparkdstl.log.coordinator.BegunRun
import sparkdstl.log.storage.{KnownFiles, StoredObject}

import org.apache.spark.sql.execution.streaming.runtime.StreamingCheckpointConstants.{
  DIR_NAME_COMMITS,
  DIR_NAME_OFFSETS,
  DIR_NAME_STATE
}
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{BuiltFor, CheckpointFiles}

/**
 * Requests the files that Spark reads at a start, while the run claims its epoch. Spark requests all others itself, and these
 * again if a request has failed.
 */
private[driver] final class StartReads(root: Path, files: CheckpointFiles, known: KnownFiles)(implicit
    executor: ExecutionContext
) {
  import StartReads._
  private val state = new Path(root, DIR_NAME_STATE)
  private val offsets = new Path(root, DIR_NAME_OFFSETS)
  private val sources = new Path(root, "sources")

  /** Reads what no claim protects: files that never change, by listings that the run does not use. */
  def begin(): Unit = {
    val (ofBatches, ofSources) = (listing(offsets), listing(sources))
    ofBatches.foreach(newest(_, 2).foreach(content))
    // After the offsets, so that no entry of a source is missing that offsets name.
    for (_ <- ofBatches; found <- ofSources; source <- found)
      listing(source.getPath).foreach { entries =>
        // A file source reads its newest compacted entry and those after it; other sources have few entries.
        val (after, others) = numbered(entries).map(_._2).reverse.span(!_.getName.endsWith(Compacted))
        (after.take(SourceEntries) ++ others.take(1)).foreach(content)
      }
    listing(state).foreach(_.foreach { operator =>
      val metadata = new Path(operator.getPath, "_metadata")
      // The listings tell the lengths, and Spark asks what is there.
      listing(metadata).foreach(_.map(_.getPath).foreach {
        case versions if versions.getName == "v2" => listing(versions).foreach(newest(_, 1).foreach(content))
        case file => content(file)
      })
      // Spark keeps the schemas of all partitions with the first one; of a join, in a directory for each store.
      if (DriverReadsSchemas)
        listing(new Path(operator.getPath, "0/_metadata")).foreach(_.foreach(of => content(of.getPath)))
    })
  }

  /** Adds what the claim has found: from here on, the listings of `commits` and `offsets` are those after the claim. */
  def claimed(begun: BegunRun): Unit = {
    // Another driver has begun a batch since, and its sources have written entries.
    if (!begun.listed.offsets.map(_.path.getName).toSet.subsetOf(arrived(offsets).map(_.getPath.getName).toSet))
      arrived(sources).foreach(source => known.changed(source.getPath))
    Seq(new Path(root, DIR_NAME_COMMITS) -> begun.listed.commits, offsets -> begun.listed.offsets).foreach {
      // A directory without entries may exist.
      case (directory, objects) if objects.isEmpty => known.changed(directory)
      case (directory, objects) => known.listed(directory, objects.iterator.map(status).toVector)
    }
    for (entry <- begun.newest; content <- entry.content) known.read(entry.path, content)
    if (DriverReadsSchemas) begun.coordinator.stores.map(_.split('/')).foreach {
      case Array(operator, "0", ofJoin) => content(new Path(state, s"$operator/0/$ofJoin/_metadata/schema"))
      case _ =>
    }
  }

  /** Waits for `restored` if the listing of `begin` shows no directory of states: Spark then gets a listing after it. */
  def awaitState(restored: Future[Unit]): Future[Unit] = listing(state).transformWith {
    case Success(found) if found.isEmpty => restored.map(_ => known.changed(state))
    case _ => Future.unit
  }

  private def status(of: StoredObject): FileStatus = new FileStatus(of.length, false, 1, 0, 0L, of.path)

  private def newest(statuses: Vector[FileStatus], number: Int): Vector[Path] =
    numbered(statuses).takeRight(number).map(_._2)

  /** In ascending order of the numbers that the files have for names. */
  private def numbered(statuses: Vector[FileStatus]): Vector[(Long, Path)] = statuses.map(_.getPath)
    .flatMap(file => file.getName.stripSuffix(Compacted).toLongOption.map(_ -> file)).sortBy(_._1)

  private def listing(directory: Path): Future[Vector[FileStatus]] = requested(directory).map(_.getOrElse(Vector.empty))

  private def requested(directory: Path): Future[Option[Vector[FileStatus]]] =
    known.listing(directory)(files.listing(directory))

  /** What a listing that was requested has shown so far. */
  private def arrived(directory: Path): Vector[FileStatus] =
    requested(directory).value.flatMap(_.toOption).flatten.getOrElse(Vector.empty)

  private def content(file: Path): Unit = known.content(file)(files.content(file, _)): Unit
}

private object StartReads {
  private val Compacted = ".compact"

  /** Whether the driver reads the schemas of stores, or a task of the first partition does. */
  private val DriverReadsSchemas = BuiltFor.Line != "3.5"

  /** The number of entries after a compacted one, at most, with Spark's default interval. */
  private val SourceEntries = 9
}
