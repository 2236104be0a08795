// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.io.FileNotFoundException
import java.nio.file.{Path => LocalPath}
import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileAlreadyExistsException, FileStatus, Path, PathFilter}

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.ownership.Claims
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.read.{Download, FileDownloads, SegmentInputStream, StoreLoad}
import sparkdstl.log.request._
import sparkdstl.log.storage.{ObjectTail, OperationKind, Payload, StorageErrors, StorageOperation}
import sparkdstl.log.storage.StorageOperation.{ReadRange, ReadTail, Replace}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{Checkpoint, ProcessResources}

/**
 * The plain files of one checkpoint directory: each request to storage has retries, hedges and a deadline. Calls block, and can
 * be interrupted.
 */
private[dstl] final class CheckpointFiles(
    path: Path,
    configuration: Configuration,
    options: LogOptions,
    resources: ProcessResources
) {
  import resources.waiting

  private val fileSystem = path.getFileSystem(configuration)
  private val store = resources.store(path, configuration, options)
  private val requests = resources.requests(path, options)
  private val storage = new StorageClient(store, requests)
  private val timeoutMillis = options.commitTimeoutMs
  private val downloads =
    new FileDownloads(
      storage,
      options.downloadThreads,
      timeoutMillis,
      (piece: Future[Array[Byte]]) => waiting.on(piece)
    )

  /** Whether the path is that of this directory. */
  def isOwn(directory: Path): Boolean = directory.toUri.getPath == path.toUri.getPath

  /**
   * The file in memory, or as Hadoop's stream if it is larger than [[PublishedFile.Limit]].
   *
   * @param length of the file, if known: saves a request
   */
  def open(file: Path, length: Option[Long] = None): FSDataInputStream = {
    val qualified = fileSystem.makeQualified(file)
    length match {
      case Some(known) if known <= PublishedFile.Limit =>
        new FSDataInputStream(SegmentInputStream.of(read(qualified, ReadRange(qualified, 0, known.toInt))))
      case _ =>
        val tail = read(qualified, ReadTail(qualified, PublishedFile.Limit))
        if (tail.isWhole) new FSDataInputStream(SegmentInputStream.of(tail.bytes)) else fileSystem.open(qualified)
    }
  }

  /** Downloads files of the store that is being loaded. */
  def download(files: Seq[Download], load: StoreLoad): Unit = downloads.fetch(files, load.progress)

  /** A file of `length` bytes as a download. */
  def downloadOf(file: Path, length: Long, to: LocalPath): Download =
    downloads.ofFile(fileSystem.makeQualified(file), length, to)

  def exists(file: Path): Boolean = ask(OperationKind.Exists, file)(fileSystem.exists(file))

  def list(directory: Path, filter: PathFilter): Array[FileStatus] =
    ask(OperationKind.List, directory)(fileSystem.listStatus(directory, filter))

  /** Deletes a file, or a directory with its content. */
  def delete(file: Path): Unit = {
    val request = requests.run(RequestKind(OperationKind.Delete), s"deletion of $file", timeoutMillis)(_ =>
      store.attempt(OperationKind.Delete -> file)(fileSystem.delete(file, true))
    )
    answer(request)(ProtocolErrors.notDeleted(file, _)): Unit
  }

  /** Deletes a file, no directory: in one request, on storage that deletes in batches. */
  def deleteEntry(file: Path): Unit =
    if (store.deletionPageSize == 1) delete(file)
    else {
      val outcome = storage.delete(Seq(fileSystem.makeQualified(file)), timeoutMillis)
      answer(outcome)(ProtocolErrors.notDeleted(file, _))
    }

  /** Creates a file of any length as Spark does. */
  def createLarge(file: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    new FileSystemBasedCheckpointFileManager(path, configuration).createAtomic(file, overwrite)

  def replace(file: Path, content: Array[Byte]): Unit = {
    val qualified = fileSystem.makeQualified(file)
    done(qualified, waiting.on(storage.run(Replace(qualified, Payload(content)), timeoutMillis)))
  }

  /**
   * Creates the file exclusively. A file that exists with the same content counts as created: by an earlier attempt whose reply
   * was lost.
   *
   * @param taken the error if the file exists with other content
   */
  def create(file: Path, content: Array[Byte])(
      taken: => Throwable = new FileAlreadyExistsException(s"$file already exists")
  ): Unit = {
    val qualified = fileSystem.makeQualified(file)
    val isOurs = (found: ObjectTail) => found.isWhole && java.util.Arrays.equals(found.bytes, content)
    done(qualified, waiting.on(storage.create(qualified, Payload(content), timeoutMillis)(isOurs))) match {
      case Creation.Ours =>
      case _: Creation.Taken => throw taken
    }
  }

  /** Run and host of the driver whose claim of the checkpoint is the newest. */
  def newestClaimant(checkpoint: Checkpoint): Option[(UUID, String)] =
    waiting.on(Claims.newest(QueryStorage(checkpoint.location, storage, storage, timeoutMillis)))

  private def done[T](file: Path, outcome: Outcome[T]): T = outcome match {
    case Outcome.Done(value) => value
    case Outcome.Failed(error) => throw ProtocolErrors.commitFailed(file, error)
    case Outcome.Unknown(error) => throw ProtocolErrors.commitUnknown(file, timeoutMillis, error)
  }

  /** Runs `read` with retries. A missing file is an answer and not retried. */
  private def ask[T](operation: OperationKind, about: Path)(read: => T): T = {
    def found(): Either[Throwable, T] =
      try Right(read)
      catch { case missing if StorageErrors.meansMissing(missing) => Left(missing) }
    val outcome = requests.run(RequestKind(operation), s"${operation.name} of $about", timeoutMillis)(_ =>
      store.attempt(operation -> about)(found())
    )
    answer(outcome)(ProtocolErrors.unreadable(about, _)).fold(throw _, identity)
  }

  private def read[T](file: Path, operation: StorageOperation[Option[T]]): T =
    answer(storage.run(operation, timeoutMillis))(ProtocolErrors.unreadable(file, _))
      .getOrElse(throw new FileNotFoundException(s"File $file does not exist"))

  private def answer[T](outcome: => Future[Outcome[T]])(explain: Throwable => Throwable): T =
    waiting.on(outcome.flatMap(_.orElseFail(explain))(ExecutionContext.parasitic))
}
