package sparkdstl.log.storage

import java.io.FileNotFoundException
import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.Future
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors

/**
 * Keeps objects in memory, for tests and for trying out: nothing outlives the process. Every attempt has ended when it
 * is returned.
 *
 * @param nowMillis
 *   stamps objects, in milliseconds since 1970
 */
final class MemoryObjectStore(nowMillis: () => Long) extends ObjectStore {
  private case class Entry(content: Array[Byte], modifiedMillis: Long)

  private val entries = new ConcurrentHashMap[Path, Entry]

  override def put(path: Path, content: Payload): Attempt[Unit] = replace(path, content)

  override def replace(path: Path, content: Payload): Attempt[Unit] = attempt {
    val _ = entries.put(path, Entry(content.toArray, nowMillis()))
  }

  override def replacesAtomically: Boolean = true

  override def create(path: Path, content: Payload): Attempt[Unit] = attempt {
    if (entries.putIfAbsent(path, Entry(content.toArray, nowMillis())) != null)
      throw StorageErrors.alreadyExists(path, null)
  }

  override def createsExclusively(path: Path): Attempt[Boolean] = attempt {
    val _ = entries.put(path, Entry(Array.emptyByteArray, nowMillis()))
    true
  }

  override def read(path: Path, maxLength: Long): Attempt[Array[Byte]] = attempt {
    val content = contentOf(path)
    if (content.length > maxLength) throw LogErrors.tooLarge(path, content.length.toLong, maxLength)
    content.clone()
  }

  override def readTail(path: Path, maxLength: Int): Attempt[ObjectTail] = attempt {
    val content = contentOf(path)
    ObjectTail(content.takeRight(maxLength), content.length.toLong)
  }

  override def readRange(path: Path, offset: Long, length: Int): Attempt[Array[Byte]] = attempt {
    val content = contentOf(path)
    if (offset + length > content.length) throw new ObjectEndsBefore(path, offset, length, content.length.toLong)
    content.slice(offset.toInt, offset.toInt + length)
  }

  override def list(directory: Path): Attempt[Seq[StoredObject]] = attempt(objects(_.getParent == directory))

  override def listRecursively(directory: Path): Attempt[Seq[StoredObject]] = attempt(objects(isBelow(directory, _)))

  override def listUnpublished(directory: Path): Attempt[Seq[StoredObject]] = attempt(Nil)

  override def delete(paths: Seq[Path]): Attempt[Unit] = attempt(paths.foreach(entries.remove(_)))

  override def deletionPageSize: Int = Int.MaxValue

  private def attempt[T](action: => T): Attempt[T] = Attempt(Future.fromTry(Try(action)))

  private def contentOf(path: Path): Array[Byte] =
    Option(entries.get(path)).map(_.content).getOrElse(throw new FileNotFoundException(s"$path does not exist"))

  private def objects(wanted: Path => Boolean): Seq[StoredObject] =
    entries.asScala.iterator.collect {
      case (path, entry) if wanted(path) => StoredObject(path, entry.content.length.toLong, entry.modifiedMillis)
    }.toVector

  private def isBelow(directory: Path, path: Path): Boolean =
    Iterator.iterate(path.getParent)(_.getParent).takeWhile(_ != null).contains(directory)
}
