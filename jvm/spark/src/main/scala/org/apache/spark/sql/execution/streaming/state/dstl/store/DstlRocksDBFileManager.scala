package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import sparkdstl.log.error.LogErrors

import org.apache.spark.sql.execution.streaming.state._

/**
 * Spark's manager of a store's snapshots, which asks storage for less, and for what a snapshot consists of all at once. One
 * listing tells what snapshots there are; nothing is asked that it tells.
 *
 * Checksum files are written on the task's own thread: the log knows then which task a changelog belongs to.
 */
private[store] final class DstlRocksDBFileManager(
    dfsRootDir: String,
    localTempDir: File,
    hadoopConf: Configuration,
    codecName: String,
    loggingId: String,
    storeConf: StateStoreConf,
    checksums: Boolean
) extends RocksDBFileManager(
      dfsRootDir,
      localTempDir,
      hadoopConf,
      codecName,
      loggingId,
      storeConf,
      fileChecksumEnabled = checksums,
      fileChecksumThreadPoolSize = Some(0)
    ) {
  private val root = new Path(dfsRootDir)

  // Spark asks for it while it constructs the superclass.
  private lazy val files =
    new SnapshotFiles(new Path(dfsRootDir).getFileSystem(hadoopConf), new Path(dfsRootDir), hadoopConf)

  // The newest listing, until it was used. Guarded by this.
  private var listed: Option[Map[SnapshotName, Option[Long]]] = None

  override protected def getFileSystem(root: String, configuration: Configuration): FileSystem = files

  override def getEligibleSnapshotsForVersion(version: Long): Seq[Long] = {
    val there = list().keysIterator.toSeq
    there.find(_.id.isDefined).foreach(other => throw LogErrors.otherFormat(new Path(root, other.toString)))
    there.map(_.version).filter(_ <= version)
  }

  /** The next question is which there are. */
  override def existsSnapshotFile(version: Long, checkpointUniqueId: Option[String]): Boolean =
    list().contains(SnapshotName(version, checkpointUniqueId))

  override def getSnapshotVersionsAndUniqueIdsFromLineage(lineage: Array[LineageItem]): Seq[(Long, String)] =
    synchronized(listed).getOrElse(list()).keysIterator
      .collect { case SnapshotName(version, Some(id)) if lineage.contains(LineageItem(version, id)) => (version, id) }
      .toSeq.sortBy(_._1).reverse

  override def loadCheckpointFromDfs(
      version: Long,
      localDir: File,
      rocksDBFileMapping: RocksDBFileMapping,
      checkpointUniqueId: Option[String]
  ): RocksDBCheckpointMetadata = {
    def load() = super.loadCheckpointFromDfs(version, localDir, rocksDBFileMapping, checkpointUniqueId)
    if (version == 0) load()
    else {
      val snapshot = SnapshotName(version, checkpointUniqueId)
      // Whoever lists again after this wants to know what is there then.
      val length = synchronized {
        val known = listed.flatMap(_.get(snapshot)).flatten
        listed = None
        known
      }
      files.loading(new Path(root, snapshot.toString), length, localDir)(pathOf)(load())
    }
  }

  /** As in Spark's `dfsFilePath`. */
  private def pathOf(file: RocksDBImmutableFile): Path = file match {
    case _: RocksDBSstFile => new Path(new Path(root, RocksDBImmutableFile.SST_FILES_DFS_SUBDIR), file.dfsFileName)
    case _ => new Path(new Path(root, RocksDBImmutableFile.LOG_FILES_DFS_SUBDIR), file.dfsFileName)
  }

  private def list(): Map[SnapshotName, Option[Long]] = {
    val found = files.snapshots().flatMap { case (name, length) => SnapshotName.parse(name).map(_ -> length) }
    synchronized { listed = Some(found) }
    found
  }
}

/** `<version>.zip`, or `<version>_<id>.zip` with checkpoint ids. */
private final case class SnapshotName(version: Long, id: Option[String]) {
  override def toString: String = s"$version${id.fold("")("_" + _)}.zip"
}

private object SnapshotName {
  private val Form = """(\d{1,18})(?:_(.+))?\.zip""".r

  def parse(name: String): Option[SnapshotName] = name match {
    case Form(version, id) => Some(SnapshotName(version.toLong, Option(id)))
    case _ => None
  }
}
