package sparkdstl.log.storage

import java.io.{EOFException, FileNotFoundException, IOException}
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

/**
 * Keeps the log in memory, for tests and for trying out: nothing outlives the process.
 *
 * @param nowMillis
 *   stamps objects, in milliseconds since 1970
 */
final class MemoryLogStorage(nowMillis: () => Long) extends LogStorage {
  private case class Entry(content: Array[Byte], modifiedMillis: Long)

  private val entries = new ConcurrentHashMap[Path, Entry]

  override def put(path: Path, content: Array[Byte]): Unit = {
    val _ = entries.put(path, Entry(content.clone(), nowMillis()))
  }

  override def putIfAbsent(path: Path, content: Array[Byte]): Unit =
    if (entries.putIfAbsent(path, Entry(content.clone(), nowMillis())) != null)
      throw StorageErrors.alreadyExists(path, null)

  override def read(path: Path, maxLength: Long): Array[Byte] = {
    val content = contentOf(path)
    if (content.length > maxLength)
      throw new IOException(s"$path is ${content.length} bytes long, $maxLength are allowed")
    content.clone()
  }

  override def readRange(path: Path, offset: Long, length: Int): Array[Byte] = {
    val content = contentOf(path)
    if (offset + length > content.length)
      throw new EOFException(s"$path ends before byte ${offset + length}: wanted $length bytes from offset $offset")
    content.slice(offset.toInt, offset.toInt + length)
  }

  override def length(path: Path): Long = contentOf(path).length.toLong

  override def exists(path: Path): Boolean = entries.containsKey(path)

  override def list(directory: Path): Seq[StoredObject] = objects(_.getParent == directory)

  override def listRecursively(directory: Path): Seq[StoredObject] = objects(isBelow(directory, _))

  override def listUnpublished(directory: Path): Seq[StoredObject] = Nil

  override def delete(paths: Seq[Path]): Unit = paths.foreach(entries.remove(_))

  private def contentOf(path: Path): Array[Byte] =
    Option(entries.get(path)).map(_.content).getOrElse(throw new FileNotFoundException(s"$path does not exist"))

  private def objects(wanted: Path => Boolean): Seq[StoredObject] =
    entries.asScala.iterator.collect {
      case (path, entry) if wanted(path) => StoredObject(path, entry.content.length.toLong, entry.modifiedMillis)
    }.toSeq

  private def isBelow(directory: Path, path: Path): Boolean =
    Iterator.iterate(path.getParent)(_.getParent).takeWhile(_ != null).contains(directory)
}
