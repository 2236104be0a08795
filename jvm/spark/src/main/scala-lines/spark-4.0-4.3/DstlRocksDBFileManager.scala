// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File
import java.nio.file.{Files, Path => LocalPath}
import java.util.concurrent.ConcurrentHashMap

import org.apache.commons.lang3.reflect.FieldUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.LogErrors
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.{Download, FoundSegment, Piece, StoreLoad}
import sparkdstl.log.transport.FromDriver
import sparkdstl.log.worker.UploadedFiles

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot
import org.apache.spark.sql.execution.streaming.state.dstl.files.LoggedStore
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.ProcessResources
import org.apache.spark.sql.execution.streaming.state.dstl.worker.{CurrentBatch, TaskLog, WorkedRun}
import org.apache.spark.util.Utils

/**
 * Spark's manager of a store's snapshots, which reads them from the log and writes them there. The driver answers where they
 * are, so storage is read only for their files, in parallel. Snapshots of stock Spark are listed and read as plain files.
 *
 * @param of    the arguments with which Spark creates the store's database
 * @param files the file system of SST files and zips
 * @param store in the log; None if its directory is not in a checkpoint
 */
private[store] final class DstlRocksDBFileManager(
    of: RocksDBArguments,
    localTempDir: File,
    options: LogOptions,
    files: SnapshotFiles,
    resources: ProcessResources,
    store: Option[LoggedStore]
) extends FileManagerShims(of, localTempDir, files)
    with SnapshotShims {
  import DstlRocksDBFileManager._
  private[store] type SnapshotFileMap = scala.collection.Map[String, RocksDBSnapshotFile]

  private val root = new Path(of.dfsRootDir)

  /** The files of snapshots that are in data files, with their places. */
  val uploadedFiles = new UploadedFiles

  // The local directories of snapshots that commit entries hold, while Spark runs its own upload of them.
  private val saved = ConcurrentHashMap.newKeySet[File]()

  // What the newest `look` found, until it is used. Guarded by this.
  private var found: Option[Map[SnapshotName, SnapshotSource]] = None
  @volatile private var loaded = LoadedFrom(0, 0, 0)

  // Whether the log's snapshots may have changed since the last deletion of old versions.
  @volatile private var retentionDue = true

  /** The snapshot that was loaded last. */
  def loadedSnapshot: LoadedFrom = loaded

  /** Versions of snapshots without checkpoint ids, none above `version`. */
  private[store] def snapshotsUpTo(version: Long): Seq[Long] =
    if (version == 0) Nil
    else {
      val there = look(version).keysIterator.toVector
      there.find(_.id.isDefined).foreach(other => throw LogErrors.otherFormat(new Path(root, other.toString), 2, 1))
      there.map(_.version).filter(_ <= version)
    }

  /** Spark's next call lists the snapshots, and uses what `look` has found. */
  override def existsSnapshotFile(version: Long, checkpointUniqueId: Option[String]): Boolean =
    look(version).contains(SnapshotName(version, checkpointUniqueId))

  /** Snapshots with checkpoint ids that are in the lineage, the newest first. */
  private[store] def snapshotsIn(lineage: Array[LineageItem]): Seq[(Long, String)] =
    synchronized(found).getOrElse(look(lineage.map(_.version).maxOption.getOrElse(0L))).keysIterator
      .collect { case SnapshotName(version, Some(id)) if lineage.contains(LineageItem(version, id)) => (version, id) }
      .toVector.sortBy(_._1).reverse

  override def loadCheckpointFromDfs(
      version: Long,
      localDir: File,
      rocksDBFileMapping: RocksDBFileMapping,
      checkpointUniqueId: Option[String]
  ): RocksDBCheckpointMetadata = {
    def load() = super.loadCheckpointFromDfs(version, localDir, rocksDBFileMapping, checkpointUniqueId)
    retentionDue = true
    if (version == 0) {
      // Spark replays all changelogs once no snapshot can be loaded. They have no names of column families.
      if (of.useColumnFamilies) StoreLoad.current.flatMap(_.failure).foreach(throw _)
      loaded = LoadedFrom(0, 0, 0)
      load()
    } else
      try {
        val metadata = loadSnapshot(SnapshotName(version, checkpointUniqueId), localDir)(load())
        resources.replayMetrics.loadedSnapshot()
        metadata
      } catch {
        case error: Throwable =>
          resources.replayMetrics.skippedSnapshot()
          StoreLoad.current.foreach(_.failed(error))
          throw error
      }
  }

  private def loadSnapshot(snapshot: SnapshotName, localDir: File)(
      loadAsSpark: => RocksDBCheckpointMetadata
  ): RocksDBCheckpointMetadata = StoreLoad.within { load =>
    import snapshot.version
    val source = synchronized(found).getOrElse(look(version)).getOrElse(snapshot, PlainFile(None))
    // A later `look` reads the log again.
    synchronized { found = None }
    val (content, downloadOf, epoch) = contentOf(snapshot, source)
    val isLogged = source.isInstanceOf[InEntry]
    files.loading(load, new Path(root, snapshot.toString), content, isLogged, localDir)(downloadOf) { consistsOf =>
      FailPoints.hit("executor.snapshot-loading", version)
      val metadata = loadAsSpark
      loaded = LoadedFrom(version, consistsOf.map(_.sizeBytes).sum, epoch)
      load.progress.foreach(_.reached(version))
      if (isLogged) cache(localDir, consistsOf) else uploadedFiles.notePlain(consistsOf.map(_.dfsFileName))
      metadata
    }
  }

  /** Saves a snapshot; `save` is what Spark does, with these files of the snapshot. */
  private[store] def saving(checkpointDir: File, version: Long, snapshot: SnapshotFileMap)(
      save: SnapshotFileMap => Unit
  ): Unit =
    if (!saved.contains(checkpointDir)) {
      if (store.exists(_.isLogged) && CurrentBatch.isAt(version - 1)) {
        snapshot.valuesIterator.map(_.immutableFile).foreach { file =>
          val isNamed = uploadedFiles.of(file.dfsFileName).exists(TaskLog.addStored(store.flatMap(_.worker), _))
          if (!isNamed) files.log(localFile(checkpointDir, file), keyOf(file, version).fileName)
        }
        save(snapshot.map { case (name, file) => name -> marked(file, isUploaded = true) })
      } else {
        // Files of earlier snapshots may be in the log only.
        save(snapshot.map { case (name, file) =>
          name ->
            (if (uploadedFiles.isPlain(file.immutableFile.dfsFileName)) file else marked(file, isUploaded = false))
        })
        uploadedFiles.notePlain(snapshot.valuesIterator.map(_.immutableFile.dfsFileName).toVector)
      }
    }

  /** The zip of a snapshot, which Spark writes into a local directory. Its immutable files are not part of the zip. */
  def pack(snapshot: RocksDBSnapshot): Array[Byte] = {
    val directory = Utils.createTempDir(snapshot.checkpointDir.getParent, "packed")
    try {
      val uploaded = snapshot.fileMapping.map { case (name, file) => name -> marked(file, isUploaded = true) }
      pack(
        snapshot.copy(fileMapping = uploaded),
        new RocksDBFileManager(new Path(directory.toURI).toString, directory, LocalFiles)
      )
      Files.readAllBytes(new File(directory, SnapshotName(snapshot.version, snapshot.uniqueId).toString).toPath)
    } finally {
      // Spark writes it beside what it packs, and would pack it twice at another attempt.
      Files.deleteIfExists(snapshot.checkpointDir.toPath.resolve("metadata")): Unit
      Utils.deleteRecursively(directory)
    }
  }

  /** Runs `confirm`, in which Spark would save a snapshot that a commit entry holds. */
  def alreadySaved(snapshot: RocksDBSnapshot)(confirm: => Unit): Unit = {
    saved.add(snapshot.checkpointDir)
    try confirm
    finally saved.remove(snapshot.checkpointDir): Unit
    retentionDue = true
  }

  /** The key of a file of a snapshot of `version` in the log. */
  def keyOf(file: RocksDBImmutableFile, version: Long): SegmentKey =
    store.flatMap(of => SegmentKey.parse(of.directory, s"${version}_${file.dfsFileName}"))
      .filter(_.kind == SegmentKind.SnapshotFile)
      .getOrElse(throw new IllegalStateException(s"a snapshot cannot consist of ${file.dfsFileName}"))

  /**
   * Deletes stock Spark's files once no retained version needs any of them. The driver deletes from the log. While the log is
   * off `deletePlain` is what Spark does.
   */
  private[store] def deletingOld(deletePlain: () => Unit): Unit =
    store match {
      case Some(in) if in.isLogged =>
        filesOfVersions.get(this).asInstanceOf[java.util.Map[_, _]].clear()
        if (retentionDue) {
          retentionDue = false
          try {
            val there = in.versions
            if (there.plainUpTo > 0 && there.lowest > there.plainUpTo) files.deletePlain()
          } catch {
            case error: Throwable =>
              retentionDue = true
              throw error
          }
        }
      case _ => deletePlain()
    }

  private def contentOf(
      snapshot: SnapshotName,
      source: SnapshotSource
  ): (Array[Byte], (RocksDBImmutableFile, LocalPath) => Download, Long) = {
    def plain(file: RocksDBImmutableFile, to: LocalPath) = files.downloadOf(pathOf(file), file.sizeBytes, to)
    source match {
      case PlainFile(length) => (files.plainContent(new Path(root, snapshot.toString), length), plain, 0L)
      case InEntry(batch) =>
        val found = for {
          in <- store
          key <- in.snapshotKey(snapshot.version, snapshot.id)
          zip <- in.snapshot(key, batch)
        } yield (in, zip)
        val (in, zip) = found.getOrElse {
          throw LogErrors.missingObject(new Path(root, snapshot.toString), s"the snapshot in the entry of batch $batch")
        }
        (
          in.content(zip),
          (file, to) => {
            val segment = zip.in.snapshotFile(in.directory, file.dfsFileName)
            segment.foreach(of => uploadedFiles.note(file.dfsFileName, of))
            segment.map(FoundSegment(zip.in, _)).fold(plain(file, to)) { found =>
              Download(to, file.sizeBytes, () => cached(in.run, found, file), () => piecesOf(in.run, found))
            }
          },
          zip.in.index.writer.epoch
        )
    }
  }

  /** Puts files of `directory`, which are in the log as well, into the SST cache. */
  def cache(directory: File, immutable: Iterable[RocksDBImmutableFile]): Unit = if (options.localRecoveryMaxSize > 0)
    resources.sstCache.put(
      of.dfsRootDir,
      immutable.map(file => file.dfsFileName -> localFile(directory, file).toPath).toMap,
      localTempDir.getParentFile.getParentFile.toPath,
      options.localRecoveryMaxSize
    )

  /** The file in the SST cache, if it has the content that the log has. */
  private def cached(worked: WorkedRun, found: FoundSegment, file: RocksDBImmutableFile): Option[LocalPath] =
    resources.sstCache.find(of.dfsRootDir, file.dfsFileName)(worked.reader.isContent(found, _))

  private def piecesOf(worked: WorkedRun, found: FoundSegment): Iterator[Piece] = {
    val offsets = found.segment.parts.scanLeft(0L)(_ + _.length)
    found.segment.parts.indices.iterator.map { index =>
      Piece(offsets(index), found.segment.parts(index).length, () => worked.reader.part(found, index))
    }
  }

  /** As in Spark's `dfsFilePath`. */
  private def pathOf(file: RocksDBImmutableFile): Path = file match {
    case _: RocksDBSstFile => new Path(new Path(root, RocksDBImmutableFile.SST_FILES_DFS_SUBDIR), file.dfsFileName)
    case _ => new Path(new Path(root, RocksDBImmutableFile.LOG_FILES_DFS_SUBDIR), file.dfsFileName)
  }

  /**
   * Snapshots from which a version can be loaded. Plain files are listed only if they may be needed; one of a later version than
   * plain files have is of a repartition that was interrupted before its commit entry.
   */
  private def look(version: Long): Map[SnapshotName, SnapshotSource] = {
    val there = store.fold(FromDriver.Versions(Vector.empty, Vector.empty, Long.MaxValue, 0))(_.versions)
    val logged = there.snapshots.map(place => SnapshotName(place.version, place.id) -> InEntry(place.batch))
    val isEnough = logged.exists { case (name, _) => name.version <= version && name.version >= there.plainUpTo }
    val plain =
      if (there.plainUpTo == 0 || isEnough) Map.empty[SnapshotName, SnapshotSource]
      else files.plainSnapshots().flatMap { case (name, length) =>
        SnapshotName.parse(name).filter(_.version <= there.plainUpTo).map(_ -> PlainFile(Some(length)))
      }
    // A plain file with the name of a snapshot in the log was left by an attempt that was not committed.
    val all = plain ++ logged
    synchronized { found = Some(all) }
    all
  }
}

private object DstlRocksDBFileManager {

  // What Spark's own deletion needs, and reads from storage otherwise.
  private val filesOfVersions = FieldUtils.getDeclaredField(classOf[RocksDBFileManager], "versionToRocksDBFiles", true)

  /** For files on the local disk: Hadoop's defaults. */
  private val LocalFiles = new Configuration

  /** Where a snapshot is. */
  sealed trait SnapshotSource

  /** In the commit entry of that batch. */
  final case class InEntry(batch: Long) extends SnapshotSource

  /** @param length if it is known */
  final case class PlainFile(length: Option[Long]) extends SnapshotSource

  /**
   * @param version of the snapshot; 0 of the empty store
   * @param bytes   total length of its files
   * @param epoch   of the run whose entry holds it; 0 if none does
   */
  final case class LoadedFrom(version: Long, bytes: Long, epoch: Long)

  def localFile(checkpointDir: File, file: RocksDBImmutableFile): File = new File(checkpointDir, file.localFileName)
}

/** `<version>.zip`, or `<version>_<id>.zip` with checkpoint ids. */
private final case class SnapshotName(version: Long, id: Option[String]) {
  override def toString: String = s"$version${id.fold("")("_" + _)}${SegmentKind.Snapshot.suffix}"
}

private object SnapshotName {
  private val Form = """(\d{1,18})(?:_(.+))?\.zip""".r

  def parse(name: String): Option[SnapshotName] = name match {
    case Form(version, id) => Some(SnapshotName(version.toLong, Option(id)))
    case _ => None
  }
}
