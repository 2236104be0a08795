// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.{ByteArrayInputStream, File, FileNotFoundException}
import java.nio.file.{Files, Path => LocalPath, StandardCopyOption}
import java.util.zip.ZipInputStream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, FilterFileSystem, Path, PathFilter}

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.LogErrors
import sparkdstl.log.format.SegmentKind
import sparkdstl.log.read.{Download, LoadedSnapshot, StoreLoad}

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.dstl.files._
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{CheckpointFiles, ProcessResources}
import org.apache.spark.util.Utils

/**
 * The file system through which a store reads and writes its snapshots, which may be in the log; their files are fetched in
 * parallel.
 *
 * @param root  the store's directory
 * @param store in the log; None if the directory is not in a checkpoint
 */
private[dstl] final class SnapshotFiles(
    root: Path,
    configuration: Configuration,
    options: LogOptions,
    resources: ProcessResources,
    store: Option[LoggedStore]
) extends FilterFileSystem(resources.fileSystem(root, configuration)) {
  private val storage = new CheckpointFiles(root, configuration, options, resources)
  private val directory = store.fold(new PlainDirectory(storage))(new StoreDirectory(_, storage))

  override def open(file: Path, bufferSize: Int): FSDataInputStream =
    if (isZip(file)) directory.open(file) else super.open(file, bufferSize)

  /** Moves the file if it was fetched ahead, as most files of the snapshot that is being loaded are. */
  override def copyToLocalFile(delSrc: Boolean, source: Path, target: Path): Unit =
    (for (load <- StoreLoad.current; download <- load.downloadOf(source.getName)) yield load -> download) match {
      case Some((_, ahead)) if Files.exists(ahead.to) =>
        Files.move(ahead.to, localPath(target), StandardCopyOption.REPLACE_EXISTING): Unit
      case Some((load, missing)) => storage.download(Seq(missing.copy(to = localPath(target))), load)
      case None => super.copyToLocalFile(delSrc, source, target)
    }

  private def isZip(file: Path): Boolean = file.getName.endsWith(SegmentKind.Snapshot.suffix)

  private def localPath(file: Path): LocalPath = new File(file.toUri.getPath).toPath

  /** Names of the store's snapshots that are plain files, with their lengths. */
  def plainSnapshots(): Map[String, Long] =
    plain(isZip(_)).map(file => file.getPath.getName -> file.getLen).toMap

  /** Deletes all snapshots and changelogs that are plain files, with the files of the snapshots. */
  def deletePlain(): Unit =
    plain(file => SnapshotFiles.isPlain(file.getName)).foreach { of =>
      if (of.isDirectory == SnapshotFiles.Directories(of.getPath.getName)) storage.delete(of.getPath)
    }

  private def plain(filter: PathFilter): Vector[FileStatus] =
    try storage.list(root).filter(status => filter.accept(status.getPath))
    catch { case _: FileNotFoundException => Vector.empty }

  /** Writes a file of a snapshot that is part of a commit into the log, under that name. */
  def log(file: File, name: String): Unit = {
    val out = directory.create(new Path(root, name), overwrite = true)
    try {
      Files.copy(file.toPath, out): Unit
      out.close()
    } catch {
      case error: Throwable =>
        out.cancel()
        throw error
    }
  }

  /** The content of a snapshot that is a plain file. */
  def plainContent(file: Path, length: Option[Long]): Array[Byte] = {
    val stream = storage.open(file, length)
    try stream.readAllBytes()
    finally stream.close()
  }

  /** A plain file as a download. */
  def downloadOf(file: Path, length: Long, to: LocalPath): Download = storage.downloadOf(file, length, to)

  /**
   * Fetches the files of a snapshot, then runs `body`, which loads it.
   *
   * @param zip            the snapshot
   * @param content        of the zip
   * @param isVerified     whether the content was checked with the log's checksum
   * @param localDirectory files that exist there are not fetched ahead
   * @param downloadOf     makes the download of one of its files to a local path
   */
  def loading[T](load: StoreLoad, zip: Path, content: Array[Byte], isVerified: Boolean, localDirectory: File)(
      downloadOf: (RocksDBImmutableFile, LocalPath) => Download
  )(body: Seq[RocksDBImmutableFile] => T): T = {
    val directory = Utils.createTempDir(localDirectory.getParentFile.getPath, "fetched")
    try {
      val consistsOf = SnapshotFiles.metadataIn(content, directory).toVector.flatMap(_.immutableFiles)
      consistsOf.filterNot(SnapshotFiles.isNamedWell).foreach { of =>
        throw LogErrors.damaged(zip, 0, s"it names a file ${of.dfsFileName}, here ${of.localFileName}")
      }
      val downloads = consistsOf.map(file => file -> downloadOf(file, directory.toPath.resolve(file.dfsFileName)))
      val missing = downloads.collect {
        case (file, download) if !new File(localDirectory, file.localFileName).exists() => download
      }
      load.progress.foreach(_.fetching(missing.map(_.length).sum))
      storage.download(missing, load)
      val path = zip.toUri.getPath
      val checksum = if (isVerified) SnapshotChecksumShims.of(content) else None
      val contents = Map(path -> content) ++ checksum.map(s"$path.crc" -> _)
      val byName = downloads.map { case (file, download) => file.dfsFileName -> download }.toMap
      load.loading(LoadedSnapshot(contents, byName))(body(consistsOf))
    } finally Utils.deleteRecursively(directory)
  }
}

private object SnapshotFiles {
  private val MetadataEntry = "metadata"

  /** Spark's directories below a store's, except the one of the state's schema. */
  private val Directories =
    Set(RocksDBImmutableFile.SST_FILES_DFS_SUBDIR, RocksDBImmutableFile.LOG_FILES_DFS_SUBDIR)
  private val Versioned = """\d{1,18}(_.+)?\.(zip|changelog)(\.crc)?""".r

  private def isPlain(name: String): Boolean = Directories(name) || Versioned.matches(name)

  /** Whether both names are those of files, without directories. */
  private def isNamedWell(file: RocksDBImmutableFile): Boolean = Seq(file.dfsFileName, file.localFileName)
    .forall(name => name.nonEmpty && new File(name).getName == name && name != "..")

  /** The table of contents; None if the zip has none: then loading the snapshot fails. */
  private def metadataIn(content: Array[Byte], temporary: File): Option[RocksDBCheckpointMetadata] = {
    val zip = new ZipInputStream(new ByteArrayInputStream(content))
    Iterator.continually(zip.getNextEntry).takeWhile(_ != null).find(_.getName == MetadataEntry).map { _ =>
      val file = new File(temporary, MetadataEntry)
      Files.copy(zip, file.toPath): Unit
      RocksDBCheckpointMetadata.readFromFile(file)
    }
  }
}
