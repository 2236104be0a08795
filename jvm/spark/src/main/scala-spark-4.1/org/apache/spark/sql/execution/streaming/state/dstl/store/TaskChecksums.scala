package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import org.apache.spark.sql.execution.streaming.checkpointing._
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.state.RocksDBConf
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.ThreadUtils

/**
 * Makes Spark's manager of snapshots write and read checksum files on the calling thread, which is the task's. Spark's own files
 * with checksums have at least two threads here, so the manager is made without, above files that have checksums.
 */
private[store] object TaskChecksums {

  /** Whether Spark's manager wraps its files itself, and with how many threads. */
  def isSparksOwn(store: RocksDBConf): Boolean = false
  val Threads: Option[Int] = None

  /** The configuration with which it makes its files. */
  def configuration(store: RocksDBConf, ofStore: Configuration): Configuration =
    if (!store.fileChecksumEnabled) ofStore
    else {
      val own = new Configuration(ofStore)
      own.set(ChecksummedFiles.Below, ofStore.get(ChecksummedFiles.FileManager))
      own.setBoolean(
        ChecksummedFiles.SkipsMissing,
        store.stateStoreConf.checkpointFileChecksumSkipCreationIfFileMissingChecksum
      )
      own.set(ChecksummedFiles.FileManager, classOf[ChecksummedFiles].getName)
      own
    }
}

private object ChecksummedFiles {
  val FileManager: String = SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key
  val Below: String = "sparkdstl.checksums.below"
  val SkipsMissing: String = "sparkdstl.checksums.skipsMissing"
}

/** Spark's checksum files beside those of the file manager below, in Spark's own format, without threads of its own. */
private[store] final class ChecksummedFiles(path: Path, configuration: Configuration) extends CheckpointFileManager {
  import ChecksumCheckpointFileManager.{getChecksumPath, isChecksumFile}

  private val below = {
    val plain = new Configuration(configuration)
    plain.set(ChecksummedFiles.FileManager, configuration.get(ChecksummedFiles.Below))
    CheckpointFileManager.create(path, plain)
  }
  private val skipsMissing = configuration.getBoolean(ChecksummedFiles.SkipsMissing, false)

  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream = {
    def main = below.createAtomic(file, overwriteIfPossible)
    if (skipsMissing && below.exists(file) && !below.exists(getChecksumPath(file))) main
    else new ChecksumCancellableFSDataOutputStream(
      main,
      file,
      below.createAtomic(getChecksumPath(file), overwriteIfPossible),
      ThreadUtils.sameThread
    )
  }

  override def open(file: Path): FSDataInputStream = {
    // One that was written without is read without.
    val checksum =
      try Some(below.open(getChecksumPath(file)))
      catch { case _: FileNotFoundException => None }
    val main = below.open(file)
    checksum.fold(main)(new ChecksumFSDataInputStream(main, file, _, ThreadUtils.sameThread))
  }

  override def delete(file: Path): Unit = {
    if (!isChecksumFile(file)) below.delete(getChecksumPath(file))
    below.delete(file)
  }

  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = below.list(directory, filter)
  override def list(directory: Path): Array[FileStatus] = below.list(directory)
  override def mkdirs(directory: Path): Unit = below.mkdirs(directory)
  override def exists(file: Path): Boolean = below.exists(file)
  override def isLocal: Boolean = below.isLocal
  override def createCheckpointDirectory(): Path = below.createCheckpointDirectory()
  override def close(): Unit = below.close()
}
