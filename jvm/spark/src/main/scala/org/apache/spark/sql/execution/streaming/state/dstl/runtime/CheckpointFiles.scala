// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.io.{FileNotFoundException, IOException}
import java.nio.file.{Path => LocalPath}
import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileAlreadyExistsException, FileStatus, Path}

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.ownership.Claims
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.read.{Download, FileDownloads, SegmentInputStream, StoreLoad}
import sparkdstl.log.request._
import sparkdstl.log.storage.{KnownFiles, ObjectTail, OperationKind, Payload, StorageErrors, StorageOperation}
import sparkdstl.log.storage.StorageOperation.{ReadRange, ReadTail, Replace}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

/**
 * The plain files of one checkpoint directory: each request to storage has retries, hedges and a deadline. Calls block, and can
 * be interrupted.
 *
 * @param start      what the start of a run on the checkpoint has read, until its first commit
 * @param isStarting as in [[Requests]]
 */
private[dstl] final class CheckpointFiles(
    path: Path,
    configuration: Configuration,
    options: LogOptions,
    resources: ProcessResources,
    start: () => Option[KnownFiles] = () => None,
    isStarting: () => Boolean = () => false
) {
  import CheckpointFiles.Limit
  import resources.waiting

  private val fileSystem = resources.fileSystem(path, configuration)
  private val store = resources.store(path, configuration, options)
  private val requests = resources.requests(path, options, isStarting)
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
   * What `read` makes of the file's content, or Hadoop's stream if it is larger than [[CheckpointFiles.Limit]]. `length` is as in
   * [[whole]].
   */
  def open(
      file: Path,
      length: Option[Long] = None,
      read: Array[Byte] => Array[Byte] = identity
  ): FSDataInputStream = whole(file, length) match {
    case Some(content) => CheckpointFiles.inMemory(read(content))
    case None => fileSystem.open(fileSystem.makeQualified(file))
  }

  /**
   * The content of a file; None if it is larger than [[CheckpointFiles.Limit]].
   *
   * @param length of the file, if known: saves a request
   */
  def whole(file: Path, length: Option[Long] = None): Option[Array[Byte]] = {
    val qualified = fileSystem.makeQualified(file)
    val found =
      known.fold(content(qualified, length))(_.content(qualified)(listed => content(qualified, listed.orElse(length))))
    val tail = waiting.on(found).getOrElse(throw new FileNotFoundException(s"File $file does not exist"))
    Option.when(tail.isWhole)(tail.bytes)
  }

  /** The first `length` bytes of a file, in one request, or all of a shorter file; None if it does not exist. */
  def beginning(file: Path, length: Int): Option[Array[Byte]] = {
    val qualified = fileSystem.makeQualified(file)
    val found = content(qualified, Some(length.toLong)).recoverWith {
      case error if StorageErrors.meansTooShort(error) => content(qualified, None)
    }(ExecutionContext.parasitic)
    waiting.on(found).map(_.bytes)
  }

  /** The content of a file, or a part of a large one; None if it does not exist. `length` is as in [[whole]]. */
  def content(file: Path, length: Option[Long]): Future[Option[ObjectTail]] = length match {
    case Some(whole) if whole <= Limit =>
      read(file, ReadRange(file, 0, whole.toInt)).map(_.map(ObjectTail(_, whole)))(ExecutionContext.parasitic)
    case Some(whole) => Future.successful(Some(ObjectTail(Array.emptyByteArray, whole)))
    case None => read(file, ReadTail(file, Limit))
  }

  /** Downloads files of the store that is being loaded. */
  def download(files: Seq[Download], load: StoreLoad): Unit = downloads.fetch(files, load.progress)

  /** A file of `length` bytes as a download. */
  def downloadOf(file: Path, length: Long, to: LocalPath): Download =
    downloads.ofFile(fileSystem.makeQualified(file), length, to)

  def exists(file: Path): Boolean = {
    val qualified = fileSystem.makeQualified(file)
    def asked = ask(OperationKind.Exists, qualified)(fileSystem.exists(qualified))
    waiting.on(known.fold(asked)(_.exists(qualified)(asked)))
  }

  def list(directory: Path): Vector[FileStatus] = {
    val qualified = fileSystem.makeQualified(directory)
    waiting.on(known.fold(listing(qualified))(_.listing(qualified)(listing(qualified))))
      .getOrElse(throw new FileNotFoundException(s"$directory does not exist"))
  }

  /** The files and directories in a directory; None if it does not exist. */
  def listing(directory: Path): Future[Option[Vector[FileStatus]]] = ask(OperationKind.List, directory) {
    try Some(fileSystem.listStatus(directory).toVector)
    catch { case error if StorageErrors.meansMissing(error) => None }
  }

  /** Creates a directory, with those above it. */
  def createDirectory(directory: Path, timeoutMillis: Long): Future[Unit] =
    ask(OperationKind.Create, directory, timeoutMillis) {
      if (!fileSystem.mkdirs(directory)) throw new IOException(s"$directory was not created")
    }

  /** Deletes a file, or a directory with its content. */
  def delete(file: Path): Unit = changing(file) {
    val request = requests.run(RequestKind(OperationKind.Delete), s"deletion of $file", timeoutMillis)(_ =>
      store.attempt(OperationKind.Delete -> file) {
        try fileSystem.delete(file, true)
        catch { case error if StorageErrors.meansMissing(error) => true }
      }
    )
    answer(request)(ProtocolErrors.notDeleted(file, _)): Unit
  }

  /** Deletes a file, no directory: in one request, on storage that deletes in batches. */
  def deleteEntry(file: Path): Unit =
    if (store.deletionPageSize == 1) delete(file)
    else changing(file) {
      val outcome = storage.delete(Seq(fileSystem.makeQualified(file)), timeoutMillis)
      answer(outcome)(ProtocolErrors.notDeleted(file, _))
    }

  /** Creates a file of any length as Spark does. */
  def createLarge(file: Path, overwrite: Boolean): CancellableFSDataOutputStream = changing(file) {
    new FileSystemBasedCheckpointFileManager(path, configuration).createAtomic(file, overwrite)
  }

  def replace(file: Path, content: Array[Byte]): Unit = {
    val qualified = fileSystem.makeQualified(file)
    waiting.on(written(qualified, content) {
      storage.run(Replace(qualified, Payload(content)), timeoutMillis)
        .flatMap(_.ofWrite(qualified, timeoutMillis))(ExecutionContext.parasitic)
    })
  }

  /** Creates the file exclusively, as [[creation]] does; `client` is as there. */
  def create(file: Path, content: Array[Byte], client: StorageClient = storage): Unit =
    waiting.on(creation(file, content, client)(
      Future.successful(new FileAlreadyExistsException(s"$file already exists"))
    ))

  /**
   * Creates the file exclusively. A file that exists with the same content counts as created: by an earlier attempt whose reply
   * was lost.
   *
   * @param client whose request it is
   * @param taken  makes the error if the file exists with other content
   */
  def creation(file: Path, content: Array[Byte], client: StorageClient = storage)(
      taken: => Future[Throwable]
  ): Future[Unit] = {
    implicit val executor: ExecutionContext = ExecutionContext.parasitic
    val qualified = fileSystem.makeQualified(file)
    val isOurs = (found: ObjectTail) => found.isWhole && java.util.Arrays.equals(found.bytes, content)
    written(qualified, content) {
      client.create(
        qualified,
        Payload(content),
        timeoutMillis,
        // Compacted entries of sources and sinks are long.
        content.length
      )(isOurs).flatMap(_.ofWrite(qualified, timeoutMillis)).flatMap {
        case Creation.Ours => Future.unit
        case _: Creation.Taken => taken.flatMap(Future.failed)
      }
    }
  }

  /** Run and host of the other driver whose claim of the checkpoint is the newest. */
  def otherClaimant(checkpoint: Checkpoint, own: UUID): Future[Option[(UUID, String)]] =
    Claims.newestOther(QueryStorage(resources.location(checkpoint), storage, storage, timeoutMillis), own)

  /** The path as storage knows it. */
  def qualified(file: Path): Path = fileSystem.makeQualified(file)

  private def known: Option[KnownFiles] = start().filter(_.isForCaller)

  /** Changes a file. If that fails, its outcome may be unknown; and a question before its end may have got the old answer. */
  private def changing[T](file: Path)(change: => T): T =
    try change
    finally start().foreach(_.changed(qualified(file)))

  /** Writes `content`, which is known from then on, unless the write fails. */
  private def written(file: Path, content: Array[Byte])(write: Future[Unit]): Future[Unit] = write.andThen {
    case result =>
      for (known <- start()) {
        known.changed(file)
        if (result.isSuccess) known.read(file, content)
      }
  }(ExecutionContext.parasitic)

  private def ask[T](operation: OperationKind, about: Path, timeout: Long = timeoutMillis)(read: => T): Future[T] =
    requests.run(RequestKind(operation), s"${operation.name} of $about", timeout)(_ =>
      store.attempt(operation -> about)(read)
    ).flatMap(_.orElseFail(ProtocolErrors.unreadable(about, _)))(ExecutionContext.parasitic)

  private def read[T](file: Path, operation: StorageOperation[Option[T]]): Future[Option[T]] =
    storage.run(operation, timeoutMillis).flatMap(_.orElseFail(ProtocolErrors.unreadable(file, _)))(
      ExecutionContext.parasitic
    )

  private def answer[T](outcome: => Future[Outcome[T]])(explain: Throwable => Throwable): T =
    waiting.on(outcome.flatMap(_.orElseFail(explain))(ExecutionContext.parasitic))
}

private[dstl] object CheckpointFiles {

  /** Up to this size a file is held in memory, and is read and written by one request. */
  val Limit: Int = 32 * 1024 * 1024

  /** A file of that content. */
  def inMemory(content: Array[Byte]): FSDataInputStream = new FSDataInputStream(SegmentInputStream.of(content))
}
