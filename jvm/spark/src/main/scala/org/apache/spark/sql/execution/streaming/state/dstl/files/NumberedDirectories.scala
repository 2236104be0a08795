// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import sparkdstl.log.coordinator.BatchPlans
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.runtime.Waiting

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.state.dstl.driver.{DrivenRun, DriverSide, SharedOptions}
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

  /** Runs `body`; if an object is damaged or missing, the error names the way out. */
  protected final def explained[T](body: => T): T = driver.fold(body)(_.explained(checkpoint)(body))

  /** The run on this checkpoint that the calling thread drives. */
  protected final def driven: Option[DrivenRun] = driver.flatMap(_.drivenHere(checkpoint.root))
}

/**
 * A directory of entries that the query's thread creates one after another, each exclusively, to plan a batch. While the write of
 * an entry is under way, it is read from memory.
 */
private[files] abstract class NumberedDirectory(
    checkpoint: Checkpoint,
    files: CheckpointFiles,
    driver: Option[DriverSide],
    waiting: Waiting
) extends QueryDirectory(checkpoint, files, driver) {

  /** The highest number of the entries that were listed, or written since; -1 without entries, None before a listing. */
  protected final def newest: Option[Long] = synchronized(highest)

  // Guarded by this. It never falls: while a batch begins, Spark's purge lists in another thread.
  private var highest = Option.empty[Long]

  protected def numberOf(entry: Path): Option[Long]

  protected final def isNext(entry: Path): Boolean = numberOf(entry).exists(number => newest.exists(number > _))

  /** The error if another driver, of this run and host, has created the entry. */
  protected def taken(entry: Path, by: Option[(UUID, String)]): Throwable

  /** Adds an entry to the plan. */
  protected def plan(plans: BatchPlans, entry: Path, content: Array[Byte])(write: => Future[Unit]): Future[Unit]

  /** Creates an entry; the stream's close does not wait for storage if the run may plan ahead. */
  protected final def createNext(entry: Path): CancellableFSDataOutputStream =
    PublishedFile(
      content => {
        driven match {
          case None => files.create(entry, content)
          case Some(run) =>
            val written = plan(run.coordinator.plans, files.qualified(entry), content) {
              files.creation(entry, content, run.client)(takenByOther(entry, run))
            }
            if (!run.mayPlanAhead) waiting.on(written)
        }
        if (newest.nonEmpty) raise(numberOf(entry))
      },
      () => files.createLarge(entry, overwrite = false)
    )

  protected final def takenByOther(entry: Path, own: DrivenRun): Future[Throwable] =
    files.otherClaimant(checkpoint, own.coordinator.run).map(taken(entry, _))(ExecutionContext.parasitic)

  override def open(entry: Path): FSDataInputStream = underWay.flatMap(_.content(files.qualified(entry)))
    .fold(files.open(entry, read = content => { check(entry, content); content }))(CheckpointFiles.inMemory)

  /** Checks the content of an entry that is read from storage. */
  protected def check(entry: Path, content: Array[Byte]): Unit = ()

  override def exists(entry: Path): Boolean =
    underWay.exists(_.content(files.qualified(entry)).nonEmpty) || super.exists(entry)

  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = {
    val before = underWay.fold(Vector.empty[(Path, Long)])(_.in(files.qualified(directory)))
    val listed = super.list(directory, filter)
    val there = listed.iterator.map(_.getPath.getName).toSet
    listed ++ before.collect {
      case (file, length) if !there(file.getName) && filter.accept(file) =>
        new FileStatus(length, false, 1, 0, 0L, file)
    }
  }

  /** Deletes an entry; first waits for writes that are under way, if a restart without them would need the entry. */
  override final def delete(entry: Path): Unit = {
    if (standsIn(entry)) underWay.foreach(plans => waiting.on(plans.whenWritten))
    remove(entry)
  }

  /** Whether a restart needs the entry if later ones that are being written never become durable. */
  protected def standsIn(entry: Path): Boolean

  protected def remove(entry: Path): Unit = super.delete(entry)

  private def underWay: Option[BatchPlans] = driver.flatMap(_.on(checkpoint.root)).map(_.coordinator.plans)

  protected final def noteListed(listed: Array[FileStatus]): Unit =
    raise(listed.iterator.flatMap(status => numberOf(status.getPath)))

  private def raise(to: IterableOnce[Long]): Unit = synchronized {
    highest = Some((Iterator(-1L) ++ highest ++ to).max)
  }
}

/** `<root>/offsets`: creating an entry begins its batch. */
private[files] final class OffsetsDirectory(
    checkpoint: Checkpoint,
    files: CheckpointFiles,
    driver: Option[DriverSide],
    resources: ProcessResources,
    workers: WorkerSide
) extends NumberedDirectory(checkpoint, files, driver, resources.waiting) {

  override protected def numberOf(entry: Path): Option[Long] = batchOf(entry)

  override def create(entry: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    if (batchOf(entry).isEmpty) super.create(entry, overwrite)
    else {
      if (driven.nonEmpty) SharedOptions.check(checkpoint.options)
      createNext(entry)
    }

  override protected def plan(
      plans: BatchPlans,
      entry: Path,
      content: Array[Byte]
  )(write: => Future[Unit]): Future[Unit] =
    batchOf(entry).fold(write) { batch =>
      plans.offsets(batch, entry, content)(
        FailPoints.ofTests.fold(write)(_.before("driver.before-offsets", batch)(write))
      )
    }

  override protected def taken(entry: Path, by: Option[(UUID, String)]): Throwable =
    ProtocolErrors.begunByOther(entry, by)

  /** A state reader opens an entry before it lists partitions, whose directories a copy of the checkpoint may lack. */
  override def open(entry: Path): FSDataInputStream = {
    if (driver.exists(!_.isStarting) && driven.isEmpty) {
      val stores = workers.of(checkpoint, UUID.randomUUID()).reader.newestStores()
      val directories = new PartitionDirectories(checkpoint, resources)
      resources.waiting.on(stores.flatMap(directories.restore)(resources.runtime.executor))
    }
    explained(super.open(entry))
  }

  /** What the query's thread reads decides which input a batch has. */
  override protected def check(entry: Path, content: Array[Byte]): Unit =
    for (run <- driven; batch <- batchOf(entry)) run.coordinator.plans.found(batch, files.qualified(entry), content)

  override def exists(entry: Path): Boolean = !(isNext(entry) && driven.nonEmpty) && super.exists(entry)

  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = {
    val listed = super.list(directory, filter)
    if (files.isOwn(directory)) noteListed(listed)
    listed
  }

  /** A restart reads the newest two entries; with `minBatchesToRetain` 1 Spark deletes one of them. */
  override protected def standsIn(entry: Path): Boolean =
    numberOf(entry).forall(number => newest.forall(number >= _ - 2))

  override protected def remove(entry: Path): Unit =
    if (batchOf(entry).isEmpty) super.remove(entry) else files.deleteEntry(entry)
}

/**
 * `<root>/sources/<source>`: a source records the input of a batch here, before the batch begins. So two drivers that take turns
 * conflict here first, unless both record the same.
 */
private[files] final class SourceDirectory(
    checkpoint: Checkpoint,
    files: CheckpointFiles,
    driver: Option[DriverSide],
    waiting: Waiting
) extends NumberedDirectory(checkpoint, files, driver, waiting) {

  /** Every tenth entry of a file source is named `<number>.compact`. */
  override protected def numberOf(entry: Path): Option[Long] = entry.getName.stripSuffix(".compact").toLongOption

  override def create(entry: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    if (overwrite) super.create(entry, overwrite)
    else createNext(entry)

  override protected def plan(
      plans: BatchPlans,
      entry: Path,
      content: Array[Byte]
  )(write: => Future[Unit]): Future[Unit] =
    plans.source(entry, content)(write)

  override protected def taken(entry: Path, by: Option[(UUID, String)]): Throwable =
    ProtocolErrors.sourceTakenByOther(entry, by)

  /** A source deletes entries that a later one has replaced. */
  override protected def standsIn(entry: Path): Boolean = true

  /**
   * A source checks the entry that it is about to write: one that exists was written by another driver. Where storage creates
   * exclusively, the write itself shows that.
   */
  override def exists(entry: Path): Boolean =
    if (!isNext(entry) || !files.isOwn(entry.getParent)) super.exists(entry)
    else driven match {
      case Some(run) if run.coordinator.createsExclusively => false
      case run =>
        val found = super.exists(entry)
        run.filter(_ => found).foreach(own => throw waiting.on(takenByOther(entry, own)))
        found
    }

  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = {
    val listed = super.list(directory, filter)
    if (files.isOwn(directory) && newest.isEmpty) noteListed(listed)
    listed
  }
}
