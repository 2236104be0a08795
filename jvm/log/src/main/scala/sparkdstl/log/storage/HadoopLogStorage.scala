package sparkdstl.log.storage

import java.io.{EOFException, FileNotFoundException}
import java.util.UUID

import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.Options.OpenFileOptions._
import org.apache.hadoop.util.functional.FutureIO.awaitFuture

import sparkdstl.log.error.LogErrors

/**
 * Keeps the log on any Hadoop file system. Checksummed ones, such as the local one, are used without their checksums:
 * the log has its own, and their sibling files would be litter.
 *
 * @param fileSystem the one that holds every path passed in
 * @param publisher how an object comes to appear
 * @param base the directory below which objects can be deleted in batches
 */
final class HadoopLogStorage private[storage] (fileSystem: FileSystem, publisher: ObjectPublisher, base: Path)
    extends LogStorage {
  import StorageOperation._

  private val deletion = new ObjectDeletion(fileSystem, base)

  // A positioned read of an object store's stream seeks, reads and seeks back; after a failed read the second seek fails as
  // well, and hides the cause. HDFS needs fewer requests for positioned reads.
  private val seeksToRead = HadoopLogStorage.publishesOnClose(fileSystem, base)

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
    case ListObjects(directory) => objects(directory)(fileSystem.listStatusIterator(directory))(isPublished)
    case ListRecursively(directory) => objects(directory)(fileSystem.listFiles(directory, true))(isPublished)
    case ListUnpublished(directory) => objects(directory)(fileSystem.listFiles(directory, true))(!isPublished(_))
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
    // An object store that is given the status does not ask for it again.
    val builder = open(path, FS_OPTION_OPENFILE_READ_POLICY_RANDOM).withFileStatus(status)
    ObjectTail(readPart(builder, status.getLen - length, length), status.getLen)
  }

  private def readRange(path: Path, offset: Long, length: Int): Array[Byte] = {
    // Naming a length spares object stores a request for it; only what is before that length is read.
    val end = offset + length
    val builder = open(path, FS_OPTION_OPENFILE_READ_POLICY_RANDOM).opt(FS_OPTION_OPENFILE_LENGTH, end.toString)
    try readPart(builder, offset, length)
    catch {
      // A connection that broke looks the same as an object that is too short.
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

  private def isPublished(path: Path): Boolean = !TemporaryNames.isTemporary(path)

  private def objects(directory: Path)(listing: => RemoteIterator[_ <: FileStatus])(
      isWanted: Path => Boolean
  ): Seq[StoredObject] =
    try {
      val found = ArrayBuffer.empty[StoredObject]
      val statuses = listing
      while (statuses.hasNext) {
        val status = statuses.next()
        if (status.isFile && isWanted(status.getPath)) found += StoredObject(status.getPath, status.getLen)
      }
      found.toVector
    } catch {
      // A directory below may vanish during the listing: that is an error, or the listing would silently lack objects.
      case _: FileNotFoundException if !fileSystem.exists(directory) => Nil
    }

  private def open(path: Path, readPolicy: String): FutureDataInputStreamBuilder =
    fileSystem.openFile(path).opt(FS_OPTION_OPENFILE_READ_POLICY, readPolicy)

  /** After an error the stream is only closed, and an error on closing hides no other. */
  private def readPart(builder: FutureDataInputStreamBuilder, offset: Long, length: Int): Array[Byte] = {
    val stream = awaitFuture(builder.build())
    val content = new Array[Byte](length)
    try
      if (seeksToRead) {
        if (offset > 0) stream.seek(offset)
        stream.readFully(content)
      } else stream.readFully(offset, content)
    catch {
      case e: Throwable =>
        try stream.close()
        catch { case NonFatal(onClose) => e.addSuppressed(onClose) }
        throw e
    }
    stream.close()
    content
  }
}

object HadoopLogStorage {

  /** No array can be larger on any JVM. */
  private val LargestArray = Int.MaxValue - 16L

  /** Storage on the file system of `base`, a directory that need not exist yet. */
  def apply(configuration: Configuration, base: Path, mode: PublishMode = PublishMode.Auto): HadoopLogStorage = {
    val fileSystem = withoutChecksums(base.getFileSystem(configuration))
    val qualified = fileSystem.makeQualified(base)
    def rename = AtomicRename.of(fileSystem, qualified, configuration)
    val publisher =
      if (publishesDirectly(fileSystem, qualified, mode)) new DirectPublisher(fileSystem)
      else new RenamePublisher(fileSystem, rename, () => UUID.randomUUID().toString)
    new HadoopLogStorage(fileSystem, publisher, qualified)
  }

  /** How an object comes to appear on the file system of `base`, in words for a log. */
  def mannerOf(configuration: Configuration, base: Path, mode: PublishMode): String = {
    val fileSystem = withoutChecksums(base.getFileSystem(configuration))
    val manner =
      if (publishesDirectly(fileSystem, fileSystem.makeQualified(base), mode))
        "written under its name, where it appears when it is complete"
      else "written to a hidden file and renamed"
    s"${fileSystem.getClass.getSimpleName}, where an object is $manner"
  }

  private def publishesDirectly(fileSystem: FileSystem, base: Path, mode: PublishMode): Boolean =
    mode == PublishMode.Direct || mode == PublishMode.Auto && publishesOnClose(fileSystem, base)

  /** Whether objects of `fileSystem` appear when their stream is closed, not before. */
  def publishesOnClose(fileSystem: FileSystem, path: Path): Boolean =
    fileSystem.getUri.getScheme == "gs" || fileSystem.hasPathCapability(path, CommonPathCapabilities.ABORTABLE_STREAM)

  /** The file system below one that keeps checksums of its own in files beside: the local one, mostly. */
  def withoutChecksums(fileSystem: FileSystem): FileSystem = fileSystem match {
    case checksummed: ChecksumFileSystem => checksummed.getRawFileSystem
    case other => other
  }
}
