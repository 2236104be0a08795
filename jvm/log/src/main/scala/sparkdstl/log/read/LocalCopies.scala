package sparkdstl.log.read

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.Checksums
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.{LocalFiles, ObjectTail}

/**
 * Copies of commit entries on the local disk, beside the [[EntryCache]] in memory: stores that replay more entries than
 * fit there fetch each from storage once all the same, and not once per store.
 *
 * Bounded: what does not fit is not copied. A copy that cannot be read, or is not what was written, is fetched again.
 * Thread-safe.
 *
 * @param maxBytes
 *   of all copies
 */
final class LocalCopies(files: LocalFiles, maxBytes: Long, runtime: ProtocolRuntime) {
  import LocalCopies._
  private implicit val executor: ExecutionContext = runtime.executor

  // Guarded by this; the least recently used first.
  private val copies = mutable.LinkedHashMap.empty[EntryPlace, Copy]
  private var used = 0L
  private var made = 0L

  /** The copy of the entry's end, or what `fetch` brings, of which a copy is made in the background. */
  def get(place: EntryPlace)(fetch: => Future[Option[ObjectTail]]): Future[Option[ObjectTail]] =
    find(place) match {
      case None => fetchAndCopy(place, fetch)
      case Some(copy) =>
        files.read(copy.name).map(Some(_)).recover { case _ => None }.flatMap {
          case Some(bytes) if bytes.length == copy.length && Checksums.of(bytes) == copy.crc =>
            Future.successful(Some(ObjectTail(bytes, copy.objectLength)))
          case _ =>
            forget(place, copy)
            fetchAndCopy(place, fetch)
        }
    }

  /** Bytes that copies take. */
  def bytes: Long = synchronized(used)

  private def find(place: EntryPlace): Option[Copy] = synchronized {
    copies.remove(place).map { copy =>
      copies.put(place, copy)
      copy
    }
  }

  private def fetchAndCopy(place: EntryPlace, fetch: => Future[Option[ObjectTail]]): Future[Option[ObjectTail]] = {
    val fetched = fetch
    fetched.foreach(_.foreach(copyOf(place, _)))
    fetched
  }

  private def copyOf(place: EntryPlace, tail: ObjectTail): Unit = {
    val length = tail.bytes.length
    val (name, over) = synchronized {
      val over = mutable.ArrayBuffer.empty[Copy]
      while (used + length > maxBytes && copies.nonEmpty && length <= maxBytes) {
        val (oldest, copy) = copies.head
        copies.remove(oldest)
        used -= copy.length
        over += copy
      }
      val fits = used + length <= maxBytes
      if (fits) {
        used += length
        made += 1
      }
      (Option.when(fits)(s"entry-$made"), over.toVector)
    }
    over.foreach(copy => files.delete(copy.name))
    name.foreach { file =>
      files.write(file, tail.bytes).onComplete { written =>
        val copy = Copy(file, length, tail.length, Checksums.of(tail.bytes))
        val unwanted = synchronized {
          val unwanted = written.isFailure || copies.contains(place)
          if (unwanted) used -= length else copies.put(place, copy): Unit
          unwanted
        }
        if (unwanted) files.delete(file): Unit
      }
    }
  }

  private def forget(place: EntryPlace, copy: Copy): Unit = {
    val removed = synchronized {
      val there = copies.get(place).exists(_ eq copy)
      if (there) {
        copies.remove(place)
        used -= copy.length
      }
      there
    }
    if (removed) files.delete(copy.name): Unit
  }
}

private object LocalCopies {

  /**
   * @param objectLength
   *   of the whole entry, of which the copy may be the end
   */
  final case class Copy(name: String, length: Int, objectLength: Long, crc: Int)
}
