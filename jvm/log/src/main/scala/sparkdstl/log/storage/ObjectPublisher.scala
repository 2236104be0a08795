// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.IOException
import java.nio.charset.StandardCharsets

import scala.util.Try

import org.apache.hadoop.fs.{FSDataOutputStream, FileAlreadyExistsException, FileSystem, Path, StreamCapabilities}
import org.apache.hadoop.fs.Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE

import sparkdstl.log.error.Causes

/** The way in which an object becomes visible atomically. */
sealed trait PublishMode

object PublishMode {

  /** [[Direct]] on file systems that are known to publish on close, [[Rename]] on others. */
  case object Auto extends PublishMode

  /** Written directly to its path, on a file system that publishes an object when its stream is closed. */
  case object Direct extends PublishMode

  /** Written to a hidden file in the same directory, then renamed. */
  case object Rename extends PublishMode
}

/** Makes objects visible atomically. An error on closing a stream is an error of the write. */
private[storage] trait ObjectPublisher {

  /** See [[StorageTraits.replacesAtomically]]. */
  def replacesAtomically: Boolean

  /** Publishes `content` at a name that no other writer uses, so that an existing object is this writer's. */
  def put(path: Path, content: Payload): Unit

  /** Publishes `content`, and replaces an existing object. */
  def replace(path: Path, content: Payload): Unit

  /** Publishes `content` if no object exists, else fails with Hadoop's `FileAlreadyExistsException`. */
  def create(path: Path, content: Payload): Unit

  /** See [[StorageOperation.TryCreation]]. */
  def createsExclusively(path: Path): Boolean

  /** Whether `creation` fails because an object exists. */
  protected def isRefused(creation: => Unit): Boolean =
    try {
      creation
      false
    } catch { case e: IOException if StorageErrors.meansAlreadyExists(e) => true }

  /** Writes the content and closes the stream. After a failed write, calls [[abandon]] instead. */
  protected def write(stream: FSDataOutputStream, content: Payload): Unit = {
    Causes.cleaningUp(abandon(stream))(content.parts.foreach(stream.write(_)))
    stream.close()
  }

  protected def abandon(stream: FSDataOutputStream): Unit

  /** The content of a trial. It is not empty, because some clients treat empty objects differently. */
  protected def trial: Payload = Payload("trial\n".getBytes(StandardCharsets.US_ASCII))
}

/** Writes directly to the object's path, on file systems that publish when a stream is closed, such as S3A. */
private[storage] final class DirectPublisher(fileSystem: FileSystem) extends ObjectPublisher {

  // With it, S3A does not check for a directory of that name. Other file systems ignore it.
  private val skipProbes = "fs.s3a.create.performance"

  override def replacesAtomically: Boolean = true
  override def put(path: Path, content: Payload): Unit = replace(path, content)

  override def replace(path: Path, content: Payload): Unit =
    write(fileSystem.createFile(path).create().overwrite(true).recursive().opt(skipProbes, true).build(), content)

  override def create(path: Path, content: Payload): Unit =
    try write(openExclusively(path), content)
    catch {
      case e: IOException if StorageErrors.meansAlreadyExists(e) => throw StorageErrors.alreadyExists(path, e)
    }

  // Opens both streams first: a client that checks before it writes does so when it opens a stream.
  override def createsExclusively(path: Path): Boolean = {
    val first = openExclusively(path)
    if (!HadoopLogStorage.publishesOnClose(fileSystem, path) && fileSystem.exists(path)) {
      first.close()
      throw new UnsupportedOperationException(
        s"$path could be seen before it was written, so a reader could take a part of a commit entry for the whole. Set " +
          "spark.sql.streaming.stateStore.dstl.storage.publish to auto"
      )
    }
    val second = Try(openExclusively(path))
    // A client that retries after a lost reply is refused here; the second creation is still decisive.
    Causes.cleaningUp(second.foreach(abandon))(isRefused(write(first, trial))): Unit
    isRefused(write(second.get, trial))
  }

  private def openExclusively(path: Path): FSDataOutputStream =
    if (!fileSystem.hasPathCapability(path, FS_OPTION_CREATE_CONDITIONAL_OVERWRITE)) fileSystem.create(path, false)
    else
      fileSystem.createFile(path).create().overwrite(false).recursive()
        .must(FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true).build()

  /** Ends a stream without publishing. A stream that cannot be aborted stays open, because closing it would publish a part. */
  override protected def abandon(stream: FSDataOutputStream): Unit =
    if (stream.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) stream.abort(): Unit
}

/** Writes to a hidden file with a random name in the object's directory, then renames it. */
private[storage] final class RenamePublisher(fileSystem: FileSystem, rename: AtomicRename, randomName: () => String)
    extends ObjectPublisher {

  override def replacesAtomically: Boolean = rename.replacesAtomically

  // Does not replace, so that a late attempt has no effect.
  override def put(path: Path, content: Payload): Unit =
    try create(path, content)
    catch { case _: FileAlreadyExistsException => }

  override def replace(path: Path, content: Payload): Unit = throughTemporary(path, content)(rename.replace(_, path))
  override def create(path: Path, content: Payload): Unit = throughTemporary(path, content)(rename.create(_, path))

  // The rename alone decides, so sequential creations are as decisive as concurrent ones.
  override def createsExclusively(path: Path): Boolean = {
    isRefused(create(path, trial)): Unit
    isRefused(create(path, trial))
  }

  private def throughTemporary(path: Path, content: Payload)(publish: Path => Unit): Unit = {
    val temporary = TemporaryNames.beside(path, randomName())
    Causes.cleaningUp(fileSystem.delete(temporary, false): Unit) {
      write(fileSystem.create(temporary, true), content)
      publish(temporary)
    }
  }

  override protected def abandon(stream: FSDataOutputStream): Unit = stream.close()
}

/** Names of unpublished files: hidden, with a suffix that objects do not have. */
private[storage] object TemporaryNames {
  def beside(path: Path, random: String): Path = new Path(path.getParent, s".${path.getName}.$random.tmp")

  def isTemporary(path: Path): Boolean = path.getName.startsWith(".") && path.getName.endsWith(".tmp")
}
