// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import java.io.{ByteArrayOutputStream, File, IOException, InterruptedIOException, OutputStream}
import java.net.URI
import java.nio.file.{Files, StandardCopyOption}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.util.Progressable

/**
 * Local files that behave like an object store: a file appears whole when its stream is closed, not before, and
 * an exclusive create is decided at that moment, or never. `<scheme>:///tmp/x` is the local `/tmp/x`. No checksum files.
 */
abstract class DirectWriteFileSystem(scheme: String) extends FileSystem {
  private val local = new RawLocalFileSystem
  private val root = URI.create(s"$scheme:///")

  /** Called at the start of each operation. */
  protected def before(operation: Operation, path: Path): Unit = ()

  /** Called at each write to a stream. */
  protected def writing(): Unit = ()

  /** Publishes an object of that size by calling `publish`; overridden to inject a fault. */
  @annotation.nowarn("cat=unused-params")
  protected def publishing(path: Path, bytes: Long)(publish: => Unit): Unit = publish

  /** Whether an exclusive create is refused at the moment when the object would appear. */
  protected def createsExclusively: Boolean = true

  override def initialize(name: URI, configuration: Configuration): Unit = {
    super.initialize(name, configuration)
    local.initialize(URI.create("file:///"), configuration)
    setConf(configuration)
  }

  override def getScheme: String = scheme

  override def getUri: URI = root

  override def getWorkingDirectory: Path = ours(local.getWorkingDirectory)

  override def setWorkingDirectory(directory: Path): Unit = local.setWorkingDirectory(theirs(directory))

  override def hasPathCapability(path: Path, capability: String): Boolean =
    capability == CommonPathCapabilities.ABORTABLE_STREAM || super.hasPathCapability(path, capability)

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    before(Operation.Open, path)
    local.open(theirs(path), bufferSize)
  }

  override def create(
      path: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable
  ): FSDataOutputStream = {
    val file = new File(theirs(path).toUri.getPath)
    if (!overwrite && file.exists()) throw new FileAlreadyExistsException(s"$path already exists")
    if (file.isDirectory) throw new FileAlreadyExistsException(s"$path is a directory")
    new FSDataOutputStream(new PublishOnClose(path, file, overwrite || !createsExclusively), statistics)
  }

  override def createNonRecursive(
      path: Path,
      permission: FsPermission,
      flags: java.util.EnumSet[CreateFlag],
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable
  ): FSDataOutputStream =
    create(path, permission, flags.contains(CreateFlag.OVERWRITE), bufferSize, replication, blockSize, progress)

  override def append(path: Path, bufferSize: Int, progress: Progressable): FSDataOutputStream =
    throw new UnsupportedOperationException("append")

  override def rename(from: Path, to: Path): Boolean = {
    before(Operation.Rename, from)
    local.rename(theirs(from), theirs(to))
  }

  override def delete(path: Path, recursive: Boolean): Boolean = {
    before(Operation.Delete, path)
    local.delete(theirs(path), recursive)
  }

  override def listStatus(path: Path): Array[FileStatus] = {
    before(Operation.List, path)
    local.listStatus(theirs(path)).map(ours).filterNot(_.getPath.getName.endsWith(DirectWriteFileSystem.Hidden))
  }

  override def mkdirs(path: Path, permission: FsPermission): Boolean = {
    before(Operation.MakeDirectory, path)
    local.mkdirs(theirs(path))
  }

  override def getFileStatus(path: Path): FileStatus = {
    before(Operation.Head, path)
    ours(local.getFileStatus(theirs(path)))
  }

  private def theirs(path: Path): Path = new Path(makeQualified(path).toUri.getPath)

  private def ours(path: Path): Path = new Path(path.toUri.getPath).makeQualified(root, null)

  private def ours(status: FileStatus): FileStatus = new FileStatus(
    status.getLen,
    status.isDirectory,
    status.getReplication.toInt,
    status.getBlockSize,
    status.getModificationTime,
    ours(status.getPath)
  )

  /** Buffers written bytes until the stream is closed. */
  private final class PublishOnClose(path: Path, file: File, overwrite: Boolean)
      extends OutputStream
      with Abortable
      with StreamCapabilities {
    private val buffer = new ByteArrayOutputStream
    private var ended = false

    override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)

    override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
      if (ended) throw new IOException(s"$path is closed")
      writing()
      buffer.write(bytes, offset, length)
    }

    override def close(): Unit = if (!ended) {
      ended = true
      before(Operation.Write, path)
      publishing(path, buffer.size.toLong)(publish())
    }

    override def abort(): Abortable.AbortableResult = {
      val already = ended
      ended = true
      new Abortable.AbortableResult {
        override def alreadyClosed(): Boolean = already
        override def anyCleanupException(): IOException = null
      }
    }

    override def hasCapability(capability: String): Boolean = capability == StreamCapabilities.ABORTABLE_STREAM

    private def publish(): Unit = {
      Files.createDirectories(file.getParentFile.toPath)
      val temporary = new File(file.getParentFile, s".${UUID.randomUUID()}${DirectWriteFileSystem.Hidden}").toPath
      Files.write(temporary, buffer.toByteArray)
      try {
        val _ =
          if (overwrite)
            Files.move(temporary, file.toPath, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
          else Files.createLink(file.toPath, temporary)
      } catch {
        case _: java.nio.file.FileAlreadyExistsException =>
          throw new FileAlreadyExistsException(s"$path already exists")
      } finally {
        val _ = Files.deleteIfExists(temporary)
      }
    }
  }
}

object DirectWriteFileSystem {
  private val Hidden = ".publishing"

  /** Blocks the caller of a file system for so long. */
  def pause(millis: Long): Unit =
    if (millis > 0)
      try Thread.sleep(millis)
      catch {
        case e: InterruptedException =>
          Thread.currentThread().interrupt()
          throw new InterruptedIOException("interrupted while a request was under way").initCause(e)
      }
}

/** Registers one of these file systems with Hadoop by the scheme of its paths. */
abstract class FileSystemScheme(val Scheme: String, implementation: Class[_ <: FileSystem]) {

  /** The configuration entry that registers it. */
  val entry: (String, String) = s"fs.$Scheme.impl" -> implementation.getName

  def configure(configuration: Configuration): Configuration = {
    configuration.set(entry._1, entry._2)
    configuration
  }
}

/** The operations of a file system, as requests to storage are counted. */
sealed trait Operation

object Operation {

  /** The publication of an object, when its stream is closed. */
  case object Write extends Operation
  case object Open extends Operation
  case object List extends Operation

  /** A check of an object's existence or status. */
  case object Head extends Operation
  case object Delete extends Operation
  case object Rename extends Operation
  case object MakeDirectory extends Operation
}
