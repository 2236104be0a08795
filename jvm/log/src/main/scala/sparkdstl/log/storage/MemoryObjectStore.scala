// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.FileNotFoundException
import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.Future
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors

/** Keeps objects in memory, for tests. Attempts end before they are returned. */
final class MemoryObjectStore extends ObjectStore {
  import StorageOperation._

  private val contents = new ConcurrentHashMap[Path, Array[Byte]]

  override def replacesAtomically: Boolean = true
  override def deletionPageSize: Int = Int.MaxValue

  override def begin[A](operation: StorageOperation[A]): Attempt[A] =
    new Attempt(Future.fromTry(Try(perform(operation))))

  private def perform[A](operation: StorageOperation[A]): A = operation match {
    case Put(path, content) => publish(path, content)
    case Replace(path, content) => publish(path, content)
    case Create(path, content) =>
      if (contents.putIfAbsent(path, content.toArray) != null)
        throw StorageErrors.alreadyExists(path, null)
      None
    case TryCreation(path) =>
      publish(path, Payload(Array.emptyByteArray))
      true
    case Read(path, maxLength) =>
      val content = contentOf(path)
      if (content.length > maxLength) throw LogErrors.tooLarge(path, content.length.toLong, maxLength)
      Some(content.clone())
    case ReadTail(path, maxLength) =>
      val content = contentOf(path)
      Some(ObjectTail(content.takeRight(maxLength), content.length.toLong))
    case ReadRange(path, offset, length) =>
      val content = contentOf(path)
      if (offset + length > content.length) throw new ObjectEndsBefore(path, offset, length, content.length.toLong)
      Some(content.slice(offset.toInt, offset.toInt + length))
    case ListObjects(directory) => objects(_.getParent == directory)
    case ListRecursively(directory) => objects(isBelow(directory, _))
    case Delete(paths) => paths.foreach(contents.remove(_))
  }

  private def publish(path: Path, content: Payload): Unit = contents.put(path, content.toArray): Unit

  private def contentOf(path: Path): Array[Byte] =
    Option(contents.get(path)).getOrElse(throw new FileNotFoundException(s"$path does not exist"))

  private def objects(wanted: Path => Boolean): Seq[StoredObject] =
    contents.asScala.iterator.collect {
      case (path, content) if wanted(path) => StoredObject(path, content.length.toLong, 0L)
    }.toVector

  private def isBelow(directory: Path, path: Path): Boolean =
    Iterator.iterate(path.getParent)(_.getParent).takeWhile(_ != null).contains(directory)
}
