package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.io.ByteArrayInputStream
import java.nio.file.{Path => LocalPath}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{
  FSDataInputStream,
  FileAlreadyExistsException,
  FileStatus,
  Path,
  PositionedReadable,
  Seekable
}
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.ownership.Claims
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.request._
import sparkdstl.log.storage.{ObjectTail, OperationKind, Payload, StorageErrors}
import sparkdstl.log.storage.StorageOperation.{ReadRange, ReadTail, Replace}

/**
 * The files of one checkpoint directory that are nothing but files, each request to storage made with retries, hedges and a
 * deadline. Calls block, and can be interrupted.
 *
 * Questions that only Spark's own file manager knows how to ask are passed in, and may be asked more than once.
 */
private[dstl] final class CheckpointFiles(
    path: Path,
    configuration: Configuration,
    options: LogOptions,
    environment: DstlEnvironment
) {
  private val fileSystem = path.getFileSystem(configuration)
  private val store = environment.store(path, configuration, options)
  private val requests = environment.requests(path, options)
  private val storage = new StorageClient(store, requests)
  private val timeoutMillis = options.commitTimeoutMs
  private val downloads = new FileDownloads(storage, options.downloadThreads, timeoutMillis, environment.waiting)

  /**
   * The file in memory; one larger than [[PublishedFileStream.Limit]] as `large` opens it.
   *
   * @param length of the file, where it is known: then nobody is asked for it
   */
  def open(file: Path, length: Option[Long] = None)(large: => FSDataInputStream): FSDataInputStream = {
    val qualified = fileSystem.makeQualified(file)
    length match {
      case Some(known) if known <= PublishedFileStream.Limit =>
        val bytes =
          environment.waiting.found(qualified, storage.run(ReadRange(qualified, 0, known.toInt), timeoutMillis))
        new FSDataInputStream(new SeekableBytes(bytes))
      case _ =>
        val read = ReadTail(qualified, PublishedFileStream.Limit)
        val tail = environment.waiting.found(qualified, storage.run(read, timeoutMillis))
        if (tail.isWhole) new FSDataInputStream(new SeekableBytes(tail.bytes)) else large
    }
  }

  /** Brings files to the local disk. */
  def download(files: Seq[Download]): Unit = downloads.fetch(files)

  /** A file of `length` bytes as a download. */
  def downloadOf(file: Path, length: Long, to: LocalPath): Download =
    downloads.ofFile(fileSystem.makeQualified(file), length, to)

  def exists(file: Path)(ask: => Boolean): Boolean = question(OperationKind.Exists, file)(ask)

  def list(directory: Path)(ask: => Array[FileStatus]): Array[FileStatus] = question(OperationKind.List, directory)(ask)

  /** Deletes the file as `attempt` does; repeated freely. */
  def delete(file: Path)(attempt: => Unit): Unit = {
    val request = requests.run(RequestKind.of(OperationKind.Delete), s"deletion of $file", timeoutMillis)(_ =>
      store.attempt(OperationKind.Delete -> file)(attempt)
    )
    environment.waiting.answer(request.outcome, ProtocolErrors.notDeleted(file, _))
  }

  /**
   * Deletes a file that is no directory: with one request, where storage deletes in batches. Elsewhere as `attempt` does, which
   * knows of what may lie beside it.
   */
  def deleteEntry(file: Path)(attempt: => Unit): Unit =
    if (store.deletionPageSize == 1) delete(file)(attempt)
    else {
      val outcome = storage.delete(Seq(fileSystem.makeQualified(file)), timeoutMillis)
      environment.waiting.answer(outcome, ProtocolErrors.notDeleted(file, _))
    }

  def replace(file: Path, content: Array[Byte]): Unit = {
    val qualified = fileSystem.makeQualified(file)
    done(qualified, environment.waiting.on(storage.run(Replace(qualified, Payload(content)), timeoutMillis)))
  }

  /**
   * Creates the file exclusively. One that is there already and has just this content was created by an earlier attempt, whose
   * reply was lost, or might as well have been.
   *
   * @throws FileAlreadyExistsException if something else is there
   */
  def create(file: Path, content: Array[Byte]): Unit =
    creation(file, content) match {
      case Creation.Ours =>
      case _: Creation.Taken => throw new FileAlreadyExistsException(s"$file already exists")
    }

  /** As [[create]], with an error of one's own. */
  def createOr(file: Path, content: Array[Byte])(taken: => Throwable): Unit =
    creation(file, content) match {
      case Creation.Ours =>
      case _: Creation.Taken => throw taken
    }

  /** Run and host of the driver that was the last to claim the checkpoint. */
  def newestClaimant(root: Path): Option[(UUID, String)] = {
    val location = DstlEnvironment.location(root, configuration, options)
    environment.waiting.on(Claims.newest(QueryStorage(location, storage, storage, timeoutMillis)))
  }

  /** Refuses a commit entry for which tasks have sealed changes with a run that is not the caller's. */
  def refuseIfSealed(root: Path, batch: Long): Unit =
    if (environment.driver.flatMap(_.on(root)).exists(_.coordinator.hasSeals(batch)))
      throw ProtocolErrors.unknownRun(batch)

  private def creation(file: Path, content: Array[Byte]): Creation = {
    val qualified = fileSystem.makeQualified(file)
    val isOurs = (found: ObjectTail) => found.isWhole && java.util.Arrays.equals(found.bytes, content)
    done(qualified, environment.waiting.on(storage.create(qualified, Payload(content), timeoutMillis)(isOurs)))
  }

  private def done[T](file: Path, outcome: Outcome[T]): T = outcome match {
    case Outcome.Done(value) => value
    case Outcome.Failed(error) => throw ProtocolErrors.commitFailed(file, error)
    case Outcome.Unknown(error) => throw ProtocolErrors.commitUnknown(file, timeoutMillis, error)
  }

  /** That nothing is there is an answer, not an error that might pass. */
  private def question[T](operation: OperationKind, about: Path)(ask: => T): T = {
    def answer(): Either[Throwable, T] =
      try Right(ask)
      catch { case missing if StorageErrors.meansMissing(missing) => Left(missing) }
    val outcome = requests.run(RequestKind.of(operation), s"${operation.name} of $about", timeoutMillis)(_ =>
      store.attempt(operation -> about)(answer())
    ).outcome
    environment.waiting.answer(about, outcome).fold(throw _, identity)
  }
}

/** Bytes in memory as Hadoop's streams want them. */
private[dstl] final class SeekableBytes(bytes: Array[Byte])
    extends ByteArrayInputStream(bytes) with Seekable with PositionedReadable {

  override def getPos: Long = pos.toLong

  override def seek(target: Long): Unit = {
    if (target < 0 || target > count) throw new java.io.EOFException(s"position $target in a file of $count bytes")
    pos = target.toInt
  }

  override def seekToNewSource(target: Long): Boolean = false

  override def read(from: Long, buffer: Array[Byte], offset: Int, length: Int): Int =
    if (from >= count) -1
    else {
      val available = math.min(length, count - from.toInt)
      System.arraycopy(buf, from.toInt, buffer, offset, available)
      available
    }

  override def readFully(from: Long, buffer: Array[Byte], offset: Int, length: Int): Unit = {
    if (from < 0 || from + length > count)
      throw new java.io.EOFException(s"position ${from + length} in a file of $count bytes")
    System.arraycopy(buf, from.toInt, buffer, offset, length)
  }

  override def readFully(from: Long, buffer: Array[Byte]): Unit = readFully(from, buffer, 0, buffer.length)
}
