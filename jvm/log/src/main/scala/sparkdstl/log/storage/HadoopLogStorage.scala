package sparkdstl.log.storage

import java.io.{EOFException, FileNotFoundException, IOException}
import java.util.UUID

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumFileSystem, CommonPathCapabilities, FileStatus, FileSystem, Path, RemoteIterator}
import org.apache.hadoop.fs.Options.OpenFileOptions._
import org.apache.hadoop.util.functional.FutureIO.awaitFuture

/**
 * Keeps the log on any Hadoop file system. Checksummed ones, such as the local one, are used without their checksums:
 * the log has its own, and their sibling files would be litter.
 *
 * @param fileSystem
 *   the one that holds every path passed in
 * @param publisher
 *   how an object comes to appear
 * @param base
 *   the directory below which objects can be deleted in batches
 */
final class HadoopLogStorage private[storage] (fileSystem: FileSystem, publisher: ObjectPublisher, base: Path)
    extends LogStorage {

  private val deletion = new ObjectDeletion(fileSystem, base)

  override def put(path: Path, content: Array[Byte]): Unit = publisher.replace(path, content)

  override def putIfAbsent(path: Path, content: Array[Byte]): Unit = publisher.create(path, content)

  override def read(path: Path, maxLength: Long): Array[Byte] = {
    val status = statusOf(path)
    if (status.getLen > math.min(maxLength, Int.MaxValue.toLong))
      throw new IOException(s"$path is ${status.getLen} bytes long, $maxLength are allowed")
    val builder = fileSystem
      .openFile(path)
      .opt(FS_OPTION_OPENFILE_READ_POLICY, FS_OPTION_OPENFILE_READ_POLICY_WHOLE_FILE)
      .withFileStatus(status)
    val stream = awaitFuture(builder.build())
    try {
      val content = new Array[Byte](status.getLen.toInt)
      stream.readFully(0, content)
      content
    } finally stream.close()
  }

  override def readRange(path: Path, offset: Long, length: Int): Array[Byte] = {
    // Naming a length spares object stores a request for it; only what is before that length is read.
    val builder = fileSystem
      .openFile(path)
      .opt(FS_OPTION_OPENFILE_READ_POLICY, FS_OPTION_OPENFILE_READ_POLICY_RANDOM)
      .opt(FS_OPTION_OPENFILE_LENGTH, (offset + length).toString)
    val stream = awaitFuture(builder.build())
    try {
      val content = new Array[Byte](length)
      stream.readFully(offset, content)
      content
    } catch {
      case e: EOFException => throw endOfFile(path, offset, length, e)
    } finally stream.close()
  }

  override def length(path: Path): Long = statusOf(path).getLen

  override def exists(path: Path): Boolean = fileSystem.exists(path)

  override def list(directory: Path): Seq[StoredObject] =
    objects(directory)(fileSystem.listStatusIterator(directory)).filterNot(o => TemporaryNames.isTemporary(o.path))

  override def listRecursively(directory: Path): Seq[StoredObject] =
    objects(directory)(fileSystem.listFiles(directory, true)).filterNot(o => TemporaryNames.isTemporary(o.path))

  override def listUnpublished(directory: Path): Seq[StoredObject] =
    objects(directory)(fileSystem.listFiles(directory, true)).filter(o => TemporaryNames.isTemporary(o.path))

  override def delete(paths: Seq[Path]): Unit = deletion.delete(paths)

  private def statusOf(path: Path): FileStatus = {
    val status = fileSystem.getFileStatus(path)
    if (status.isDirectory) throw new FileNotFoundException(s"$path is a directory")
    status
  }

  private def objects(directory: Path)(listing: => RemoteIterator[_ <: FileStatus]): Seq[StoredObject] =
    try {
      val found = ArrayBuffer.empty[StoredObject]
      val statuses = listing
      while (statuses.hasNext) {
        val status = statuses.next()
        if (status.isFile) found += StoredObject(status.getPath, status.getLen, status.getModificationTime)
      }
      found.toSeq
    } catch {
      // A directory below may vanish while we look: that is an error, or a listing would silently lack objects.
      case _: FileNotFoundException if !fileSystem.exists(directory) => Nil
    }

  private def endOfFile(path: Path, offset: Long, length: Int, cause: EOFException): EOFException = {
    val error = new EOFException(s"$path ends before byte ${offset + length}: wanted $length bytes from offset $offset")
    error.initCause(cause)
    error
  }
}

object HadoopLogStorage {

  /** Storage on the file system of `base`, a directory that need not exist yet. */
  def apply(configuration: Configuration, base: Path, mode: PublishMode = PublishMode.Auto): HadoopLogStorage = {
    val fileSystem = withoutChecksums(base.getFileSystem(configuration))
    val qualified = fileSystem.makeQualified(base)
    new HadoopLogStorage(fileSystem, publisher(configuration, fileSystem, qualified, mode), qualified)
  }

  private def publisher(
      configuration: Configuration,
      fileSystem: FileSystem,
      base: Path,
      mode: PublishMode
  ): ObjectPublisher = mode match {
    case PublishMode.Direct => new DirectPublisher(fileSystem)
    case PublishMode.Auto if publishesOnClose(fileSystem, base) => new DirectPublisher(fileSystem)
    case PublishMode.Auto | PublishMode.Rename =>
      val rename = AtomicRename.of(fileSystem, base, configuration)
      new RenamePublisher(fileSystem, rename, () => UUID.randomUUID().toString)
  }

  /** Whether objects of `fileSystem` appear when their stream is closed, not before. */
  def publishesOnClose(fileSystem: FileSystem, path: Path): Boolean =
    fileSystem.getUri.getScheme == "gs" || fileSystem.hasPathCapability(path, CommonPathCapabilities.ABORTABLE_STREAM)

  private def withoutChecksums(fileSystem: FileSystem): FileSystem = fileSystem match {
    case checksummed: ChecksumFileSystem => checksummed.getRawFileSystem
    case other => other
  }
}
