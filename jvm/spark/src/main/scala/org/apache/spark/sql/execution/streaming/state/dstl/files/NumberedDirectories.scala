// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.util.UUID

import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import sparkdstl.log.error.ProtocolErrors

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.state.dstl.driver.{DrivenRun, DriverSide}
import org.apache.spark.sql.execution.streaming.state.dstl.runtime._
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkerSide

/**
 * A directory about which the query's thread asks at its start, before any other: the first question begins the run. Older lines
 * of Spark ask about sources first, others about offsets.
 */
private[files] abstract class QueryDirectory(
    checkpoint: Checkpoint,
    files: CheckpointFiles,
    driver: Option[DriverSide]
) extends PlainDirectory(files) {

  override def exists(entry: Path): Boolean = {
    begin()
    super.exists(entry)
  }

  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = {
    begin()
    super.list(directory, filter)
  }

  /** Begins the run if the calling thread drives its query and has not begun it yet. */
  protected final def begin(): Unit = driver.foreach(_.beginIfDriven(checkpoint))

  /** The run on this checkpoint that the calling thread drives. */
  protected final def driven: Option[DrivenRun] = driver.flatMap(_.drivenHere(checkpoint.root))
}

/** A directory of entries that the query's thread creates one after another, each exclusively. */
private[files] abstract class NumberedDirectory(
    checkpoint: Checkpoint,
    files: CheckpointFiles,
    driver: Option[DriverSide]
) extends QueryDirectory(checkpoint, files, driver) {

  /** The highest number of the entries that were listed, or written since; -1 without entries, None before a listing. */
  @volatile protected final var newest: Option[Long] = None

  protected def numberOf(entry: Path): Option[Long]

  protected final def isNext(entry: Path): Boolean = numberOf(entry).exists(number => newest.exists(number > _))

  /** Creates an entry. If another driver has created it, `taken` makes the error, with that driver's run and host. */
  protected final def createNext(entry: Path)(taken: Option[(UUID, String)] => Throwable)
      : CancellableFSDataOutputStream =
    PublishedFile(
      content => {
        if (driven.isEmpty) files.create(entry, content)()
        else files.create(entry, content)(taken(newestClaimant))
        newest = newest.map(math.max(_, numberOf(entry).getOrElse(-1L)))
      },
      () => files.createLarge(entry, overwrite = false)
    )

  protected final def newestClaimant: Option[(UUID, String)] = files.newestClaimant(checkpoint)

  protected final def noteListed(listed: Array[FileStatus]): Unit =
    newest = Some(listed.iterator.flatMap(status => numberOf(status.getPath)).maxOption.getOrElse(-1L))
}

/** `<root>/offsets`: creating an entry begins its batch. */
private[files] final class OffsetsDirectory(
    checkpoint: Checkpoint,
    files: CheckpointFiles,
    driver: Option[DriverSide],
    resources: ProcessResources,
    workers: WorkerSide
) extends NumberedDirectory(checkpoint, files, driver) {

  override protected def numberOf(entry: Path): Option[Long] = batchOf(entry)

  override def create(entry: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    if (batchOf(entry).isEmpty) super.create(entry, overwrite)
    else createNext(entry)(ProtocolErrors.begunByOther(entry, _))

  /** A state reader opens an entry before it lists partitions, whose directories a copy of the checkpoint may lack. */
  override def open(entry: Path): FSDataInputStream = {
    if (driver.exists(!_.isStarting) && driven.isEmpty) {
      val stores = workers.of(checkpoint, UUID.randomUUID()).reader.newestStores()
      val directories = new PartitionDirectories(checkpoint, resources)
      resources.waiting.on(stores.flatMap(directories.restore)(resources.runtime.executor))
    }
    super.open(entry)
  }

  override def exists(entry: Path): Boolean = !(isNext(entry) && driven.nonEmpty) && super.exists(entry)

  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = {
    val listed = super.list(directory, filter)
    if (files.isOwn(directory)) noteListed(listed)
    listed
  }

  override def delete(entry: Path): Unit = if (batchOf(entry).isEmpty) super.delete(entry) else files.deleteEntry(entry)
}

/**
 * `<root>/sources/<number>`: a source records the input of a batch here, before the batch begins. So two drivers that take turns
 * conflict here first.
 */
private[files] final class SourceDirectory(
    checkpoint: Checkpoint,
    files: CheckpointFiles,
    driver: Option[DriverSide]
) extends NumberedDirectory(checkpoint, files, driver) {

  /** Every tenth entry of a file source is named `<number>.compact`. */
  override protected def numberOf(entry: Path): Option[Long] = entry.getName.stripSuffix(".compact").toLongOption

  override def create(entry: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    if (overwrite) super.create(entry, overwrite)
    else createNext(entry)(ProtocolErrors.sourceTakenByOther(entry, _))

  /** A source checks the entry that it is about to write: one that exists was written by another driver. */
  override def exists(entry: Path): Boolean = {
    val found = super.exists(entry)
    if (found && isNext(entry) && files.isOwn(entry.getParent) && driven.nonEmpty)
      throw ProtocolErrors.sourceTakenByOther(entry, newestClaimant)
    found
  }

  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = {
    val listed = super.list(directory, filter)
    if (files.isOwn(directory) && newest.isEmpty) noteListed(listed)
    listed
  }
}
