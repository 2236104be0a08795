// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.Checksums
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.{LocalFiles, ObjectTail}

/**
 * A cache on the local disk below the [[MemoryCache]]: objects that do not fit in memory are still fetched once, not once per
 * store.
 *
 * The cache holds at most `maxBytes`. It does not evict recently used copies, so that a part stays of a scan that exceeds the
 * limit and that every store repeats. A copy that cannot be read or is damaged is fetched again. Nothing more is copied while
 * 64 MiB wait for a slow disk. Thread-safe.
 */
final class DiskCache(files: LocalFiles, maxBytes: Long, runtime: ProtocolRuntime) {
  import DiskCache._
  private implicit val executor: ExecutionContext = runtime.executor

  // Guarded by this; the least recently used first.
  private val copies = mutable.LinkedHashMap.empty[ReadPlace, Copy]
  private var used = 0L
  private var unwritten = 0L
  private var made = 0L

  /** Returns the copy, or the result of `fetch`, which is copied in the background. */
  def get(place: ReadPlace)(fetch: => Future[Option[ObjectTail]]): Future[Option[ObjectTail]] =
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

  def bytes: Long = synchronized(used)

  private def find(place: ReadPlace): Option[Copy] = synchronized {
    copies.remove(place).map { copy =>
      copy.usedNanos = runtime.timer.nowNanos
      copies.put(place, copy)
      copy
    }
  }

  private def fetchAndCopy(place: ReadPlace, fetch: => Future[Option[ObjectTail]]): Future[Option[ObjectTail]] = {
    val fetched = fetch
    fetched.foreach(_.foreach(copyOf(place, _)))
    fetched
  }

  private def copyOf(place: ReadPlace, tail: ObjectTail): Unit = {
    val length = tail.bytes.length
    val (name, over) = synchronized {
      val over = mutable.ArrayBuffer.empty[Copy]
      val now = runtime.timer.nowNanos
      def isIdle(copy: Copy) = now - copy.usedNanos >= IdleNanos
      val mayWrite = (unwritten == 0 || unwritten + length <= MaxUnwritten) && length <= maxBytes
      while (mayWrite && used + length > maxBytes && copies.headOption.exists(of => isIdle(of._2))) {
        val (oldest, copy) = copies.head
        copies.remove(oldest)
        used -= copy.length
        over += copy
      }
      val fits = mayWrite && used + length <= maxBytes
      if (fits) {
        used += length
        unwritten += length
        made += 1
      }
      (Option.when(fits)(s"copy-$made"), over.toVector)
    }
    over.foreach(copy => files.delete(copy.name))
    name.foreach { file =>
      files.write(file, tail.bytes).onComplete { written =>
        val copy = new Copy(file, length, tail.length, Checksums.of(tail.bytes), runtime.timer.nowNanos)
        val unwanted = synchronized {
          unwritten -= length
          val unwanted = written.isFailure || copies.contains(place)
          if (unwanted) used -= length else copies.put(place, copy): Unit
          unwanted
        }
        if (unwanted) files.delete(file): Unit
      }
    }
  }

  /** Removes a damaged or unneeded copy. */
  def forget(place: ReadPlace): Unit = synchronized(copies.get(place)).foreach(forget(place, _))

  private def forget(place: ReadPlace, copy: Copy): Unit = {
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

private object DiskCache {

  /** A copy is not evicted before this time after its last use, within which other stores read it. */
  private val IdleNanos = 60L * 1000 * 1000 * 1000

  /** Bytes in memory of copies that are being written. */
  private val MaxUnwritten = 64L * 1024 * 1024

  /** @param objectLength length of the whole object; the copy may be only its end */
  private final class Copy(
      val name: String,
      val length: Int,
      val objectLength: Long,
      val crc: Int,
      // Guarded by the copies.
      var usedNanos: Long
  )
}
