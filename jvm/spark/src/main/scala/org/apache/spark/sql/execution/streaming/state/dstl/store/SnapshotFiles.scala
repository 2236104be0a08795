package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.{ByteArrayInputStream, File}
import java.nio.file.{Files, Path => LocalPath, StandardCopyOption}
import java.util.zip.ZipInputStream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileSystem, FilterFileSystem, Path, PathFilter}

import sparkdstl.log.config.HadoopOptions
import sparkdstl.log.error.LogErrors
import sparkdstl.log.format.SegmentKind

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.dstl.files.{
  CheckpointFiles,
  Download,
  LoggedFileStatus,
  SeekableBytes
}
import org.apache.spark.util.Utils

/** Which snapshot the calling thread is loading: it is opened again by those who do not know that its content is here. */
private[dstl] object LoadedSnapshot {
  private val loaded = new ThreadLocal[(String, Array[Byte])]

  def during[T](file: Path, content: Array[Byte])(body: => T): T = {
    loaded.set((file.toUri.getPath, content))
    try body
    finally loaded.remove()
  }

  def open(file: Path): Option[FSDataInputStream] =
    Option(loaded.get).collect {
      case (path, content) if path == file.toUri.getPath =>
        new FSDataInputStream(new SeekableBytes(content))
    }
}

/**
 * The file system as a store sees its snapshots: read by way of the file manager, because they may be in the log, and their
 * files fetched all at once.
 *
 * @param root the store's directory
 */
private[dstl] final class SnapshotFiles(files: FileSystem, root: Path, configuration: Configuration)
    extends FilterFileSystem(files) {
  private lazy val manager = CheckpointFileManager.create(root, configuration)
  private lazy val storage = new CheckpointFiles(root, configuration, HadoopOptions.parse(configuration))

  // What the snapshot that is being loaded consists of, by its name on storage; most of it was fetched ahead.
  @volatile private var wanted = Map.empty[String, Download]

  override def open(file: Path, bufferSize: Int): FSDataInputStream =
    if (isSnapshot(file)) manager.open(file) else super.open(file, bufferSize)

  override def copyToLocalFile(delSrc: Boolean, source: Path, target: Path): Unit =
    wanted.get(source.getName) match {
      case Some(ahead) if Files.exists(ahead.to) =>
        Files.move(ahead.to, localPath(target), StandardCopyOption.REPLACE_EXISTING): Unit
      case Some(late) => storage.download(Seq(late.copy(to = localPath(target))))
      case None => super.copyToLocalFile(delSrc, source, target)
    }

  private def localPath(file: Path): LocalPath = new File(file.toUri.getPath).toPath

  /** Names of the store's snapshots, with the length of those that are files of their own. */
  def snapshots(): Map[String, Option[Long]] = {
    val filter: PathFilter = isSnapshot(_)
    manager.list(root, filter).iterator.map {
      case logged: LoggedFileStatus => logged.getPath.getName -> None
      case file => file.getPath.getName -> Some(file.getLen)
    }.toMap
  }

  /**
   * Runs `load`, which loads `snapshot`, with everything at hand that it will ask for.
   *
   * @param length         of that file, if it is known and a file
   * @param localDirectory what has a file of the right name there is not fetched ahead
   * @param pathOf         where on storage a file of a snapshot is, by its name
   */
  def loading[T](snapshot: Path, length: Option[Long], localDirectory: File)(
      pathOf: RocksDBImmutableFile => Path
  )(load: => T): T = {
    val content = contentOf(snapshot, length)
    LoadedSnapshot.during(snapshot, content) {
      val directory = Utils.createTempDir(localDirectory.getParentFile.getPath, "fetched")
      try {
        val consistsOf = SnapshotFiles.metadataIn(content, directory).toSeq.flatMap(_.immutableFiles)
        consistsOf.filterNot(SnapshotFiles.isNamedWell).foreach { of =>
          throw LogErrors.damaged(snapshot, 0, s"it names a file ${of.dfsFileName}, here ${of.localFileName}")
        }
        val downloads = consistsOf
          .map(file => file -> Download(pathOf(file), file.sizeBytes, directory.toPath.resolve(file.dfsFileName)))
        wanted = downloads.map { case (file, download) => file.dfsFileName -> download }.toMap
        storage.download(downloads.collect {
          case (file, download) if !new File(localDirectory, file.localFileName).exists() => download
        })
        load
      } finally {
        wanted = Map.empty
        Utils.deleteRecursively(directory)
      }
    }
  }

  private def contentOf(file: Path, length: Option[Long]): Array[Byte] = {
    val stream = if (length.isEmpty) manager.open(file) else storage.open(file, length)(manager.open(file))
    try stream.readAllBytes()
    finally stream.close()
  }

  private def isSnapshot(file: Path): Boolean = file.getName.endsWith(SegmentKind.Snapshot.suffix)
}

private object SnapshotFiles {
  private val MetadataEntry = "metadata"

  /** What a snapshot consists of lies beside it, and nowhere else. */
  private def isNamedWell(file: RocksDBImmutableFile): Boolean = Seq(file.dfsFileName, file.localFileName)
    .forall(name => name.nonEmpty && new File(name).getName == name && name != "..")

  /** The table of contents; None if there is none, about which whoever loads the snapshot has something to say. */
  private def metadataIn(content: Array[Byte], temporary: File): Option[RocksDBCheckpointMetadata] = {
    val zip = new ZipInputStream(new ByteArrayInputStream(content))
    Iterator.continually(zip.getNextEntry).takeWhile(_ != null).find(_.getName == MetadataEntry).map { _ =>
      val file = new File(temporary, MetadataEntry)
      Files.copy(zip, file.toPath): Unit
      RocksDBCheckpointMetadata.readFromFile(file)
    }
  }
}
