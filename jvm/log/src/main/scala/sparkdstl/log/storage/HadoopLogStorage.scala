// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.{EOFException, FileNotFoundException}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.Options.OpenFileOptions._
import org.apache.hadoop.util.functional.FutureIO.awaitFuture

import sparkdstl.log.error.{Causes, LogErrors}

/**
 * The log's storage on any Hadoop file system. It bypasses a file system's checksum files, such as those of the local one,
 * because the log has its own checksums. `base` is the directory of batch deletions.
 */
final class HadoopLogStorage private (
    fileSystem: FileSystem,
    publisher: ObjectPublisher,
    base: Path,
    isObjectStore: Boolean
) extends LogStorage {
  import StorageOperation._

  private val deletion = new ObjectDeletion(fileSystem, base)

  private[storage] def this(fileSystem: FileSystem, publisher: ObjectPublisher, base: Path) =
    this(fileSystem, publisher, base, HadoopLogStorage.publishesOnClose(fileSystem, base))

  override def replacesAtomically: Boolean = publisher.replacesAtomically
  override def deletionPageSize: Int = deletion.pageSize

  override def perform[A](operation: StorageOperation[A]): A = operation match {
    case Put(path, content) => publisher.put(path, content)
    case Replace(path, content) => publisher.replace(path, content)
    case Create(path, content) =>
      publisher.create(path, content)
      None
    case TryCreation(path) => publisher.createsExclusively(path)
    case Read(path, maxLength) => Some(read(path, maxLength))
    case ReadTail(path, maxLength) => Some(readTail(path, maxLength))
    case ReadRange(path, offset, length) => Some(readRange(path, offset, length))
    case ListObjects(directory) =>
      objects(directory, isRecursive = false)(entriesOf(directory)).filterNot(_.isUnpublished)
    case ListRecursively(directory) => objects(directory, isRecursive = true)(below(directory))
    case Delete(paths) => deletion.delete(paths)
  }

  private def read(path: Path, maxLength: Long): Array[Byte] = {
    val status = statusOf(path)
    val limit = math.min(maxLength, HadoopLogStorage.LargestArray)
    if (status.getLen > limit) throw LogErrors.tooLarge(path, status.getLen, limit)
    readPart(open(path, FS_OPTION_OPENFILE_READ_POLICY_WHOLE_FILE).withFileStatus(status), 0, status.getLen.toInt)
  }

  private def readTail(path: Path, maxLength: Int): ObjectTail = {
    val status = statusOf(path)
    val length = math.min(status.getLen, maxLength.toLong).toInt
    // With the status, an object store needs no request for it.
    val builder = open(path, FS_OPTION_OPENFILE_READ_POLICY_RANDOM).withFileStatus(status)
    ObjectTail(readPart(builder, status.getLen - length, length), status.getLen)
  }

  private def readRange(path: Path, offset: Long, length: Int): Array[Byte] = {
    // With a length, an object store needs no request for it.
    val end = offset + length
    val builder = open(path, FS_OPTION_OPENFILE_READ_POLICY_RANDOM).opt(FS_OPTION_OPENFILE_LENGTH, end.toString)
    try readPart(builder, offset, length)
    catch {
      // A broken connection causes the same exception as an object that is too short.
      case e: EOFException =>
        val actual = statusOf(path).getLen
        throw if (actual < end) new ObjectEndsBefore(path, offset, length, actual).initCause(e) else e
    }
  }

  private def statusOf(path: Path): FileStatus = {
    val status = fileSystem.getFileStatus(path)
    if (status.isDirectory) throw new FileNotFoundException(s"$path is a directory")
    status
  }

  private def objects(directory: Path, isRecursive: Boolean)(listing: => Vector[FileStatus]): Vector[StoredObject] =
    try
      listing.collect {
        case status if status.isFile => StoredObject(status.getPath, status.getLen, status.getModificationTime)
        case empty if isRecursive => StoredObject(empty.getPath, 0, empty.getModificationTime, isEmptyDirectory = true)
      }
    catch {
      // If a directory below is deleted during the listing, the listing is incomplete and fails.
      case _: FileNotFoundException if !fileSystem.exists(directory) => Vector.empty
    }

  /**
   * An object store lists everything below a path in one request per page. On other file systems `listFiles` is not used: it
   * would ask for the blocks of each file too and, on local ones, start a program to read its permissions.
   */
  private def below(directory: Path): Vector[FileStatus] =
    if (isObjectStore) drained(fileSystem.listFiles(directory, true))
    else entriesOf(directory).flatMap { found =>
      val inside = if (found.isDirectory) below(found.getPath) else Vector.empty
      if (inside.isEmpty) Vector(found) else inside
    }

  private def entriesOf(directory: Path): Vector[FileStatus] = drained(fileSystem.listStatusIterator(directory))

  private def drained(statuses: RemoteIterator[_ <: FileStatus]): Vector[FileStatus] =
    Iterator.continually(statuses).takeWhile(_.hasNext).map(_.next()).toVector

  private def open(path: Path, readPolicy: String): FutureDataInputStreamBuilder =
    fileSystem.openFile(path).opt(FS_OPTION_OPENFILE_READ_POLICY, readPolicy)

  /** Reads a part. An error on closing the stream does not hide an error of the read. */
  private def readPart(builder: FutureDataInputStreamBuilder, offset: Long, length: Int): Array[Byte] = {
    val stream = awaitFuture(builder.build())
    val content = new Array[Byte](length)
    Causes.cleaningUp(stream.close()) {
      // A positioned read of an object store's stream seeks back at the end; after a failed read this seek fails too and
      // hides the cause. HDFS needs fewer requests for positioned reads.
      if (isObjectStore) {
        if (offset > 0) stream.seek(offset)
        stream.readFully(content)
      } else stream.readFully(offset, content)
    }
    stream.close()
    content
  }
}

object HadoopLogStorage {

  /** The maximum array length on all JVMs. */
  private val LargestArray = Int.MaxValue - 16L

  /** Storage on the file system of `base`, which need not exist; of several that a client mounts, on that of `base`. */
  def apply(configuration: Configuration, base: Path, mode: PublishMode = PublishMode.Auto): HadoopLogStorage =
    on(base.getFileSystem(configuration), configuration, base, mode)

  /** The same with a client, which the caller owns. */
  def on(client: FileSystem, configuration: Configuration, base: Path, mode: PublishMode): HadoopLogStorage = {
    val fileSystem = withoutChecksums(client)
    val qualified = fileSystem.makeQualified(base)
    def rename = AtomicRename.of(fileSystem, qualified, configuration)
    val publisher =
      if (publishesDirectly(fileSystem, qualified, mode)) new DirectPublisher(fileSystem)
      else new RenamePublisher(fileSystem, rename, () => UUID.randomUUID().toString)
    new HadoopLogStorage(fileSystem, publisher, new Path(qualified, "/"), publishesOnClose(fileSystem, qualified))
  }

  /** A description for logs of how objects become visible on the file system of `base`, whose `client` the caller owns. */
  def mannerOf(client: FileSystem, base: Path, mode: PublishMode): String = {
    val fileSystem = withoutChecksums(client)
    val manner =
      if (publishesDirectly(fileSystem, fileSystem.makeQualified(base), mode))
        "written under its name, where it appears when it is complete"
      else "written to a hidden file and renamed"
    s"${fileSystem.getClass.getSimpleName}, where an object is $manner"
  }

  private def publishesDirectly(fileSystem: FileSystem, base: Path, mode: PublishMode): Boolean =
    mode == PublishMode.Direct || mode == PublishMode.Auto && publishesOnClose(fileSystem, base)

  /** Whether objects of `fileSystem` become visible only when their stream is closed. */
  def publishesOnClose(fileSystem: FileSystem, path: Path): Boolean =
    fileSystem.getUri.getScheme == "gs" || fileSystem.hasPathCapability(path, CommonPathCapabilities.ABORTABLE_STREAM)

  /** The raw file system below one with checksum files, such as the local one. */
  def withoutChecksums(fileSystem: FileSystem): FileSystem = fileSystem match {
    case checksummed: ChecksumFileSystem => checksummed.getRawFileSystem
    case other => other
  }
}
