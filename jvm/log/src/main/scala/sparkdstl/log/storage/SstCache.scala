// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.{IOException, InputStream}
import java.nio.file.Path

import scala.collection.mutable
import scala.util.Using

import org.slf4j.LoggerFactory

/**
 * A cache of SST files on the local disk for stores that are opened again in a process. It consists of links, which take no
 * space while a store has the file itself.
 *
 * The cache is bounded: files of the least recently used stores are evicted first. A file that cannot be linked is not cached.
 * A cached file is verified before it is returned. Thread-safe.
 */
final class SstCache(links: LinkedFiles) {
  private val logger = LoggerFactory.getLogger(classOf[SstCache])
  private case class Cached(path: Path, length: Long)

  // Guarded by this; the least recently used stores first.
  private val stores = mutable.LinkedHashMap.empty[String, Map[String, Cached]]
  private var maxBytes = 0L
  private var hasWarned = false

  /**
   * Replaces the cached files of a store. A name always has the same content. `near` is a permanent directory on the same
   * disk. The largest `limit` of all queries bounds the bytes of all stores together.
   */
  def put(store: String, files: Map[String, Path], near: Path, limit: Long): Unit = synchronized {
    maxBytes = math.max(maxBytes, limit)
    val before = stores.remove(store).getOrElse(Map.empty)
    (before -- files.keySet).values.foreach(remove)
    val now = before.filter(of => files.contains(of._1)) ++ (files -- before.keySet).flatMap { case (name, file) =>
      link(file, near).map(name -> _)
    }
    stores.put(store, now)
    while (bytes > maxBytes) stores.remove(stores.head._1).foreach(_.values.foreach(remove))
  }

  /**
   * Returns a cached file of a store, which may be evicted at any time. Evicts the file if it is missing or not `isWhole`,
   * which is called without a lock.
   */
  def find(store: String, name: String)(isWhole: InputStream => Boolean): Option[Path] =
    cached(store, name).filter { of =>
      val whole = Using(links.open(of.path))(isWhole).getOrElse(false)
      if (!whole) {
        logger.warn(s"${of.path}, the cached file $name, is damaged; it is fetched again")
        evict(store, name, of)
      }
      whole
    }.map(_.path)

  private def cached(store: String, name: String): Option[Cached] = synchronized {
    val files = stores.remove(store)
    files.foreach(stores.put(store, _))
    files.flatMap(_.get(name))
  }

  private def evict(store: String, name: String, damaged: Cached): Unit = synchronized {
    if (stores.get(store).flatMap(_.get(name)).exists(_ eq damaged)) {
      stores.updateWith(store)(_.map(_ - name)): Unit
      remove(damaged)
    }
  }

  def bytes: Long = synchronized(stores.valuesIterator.flatMap(_.valuesIterator).map(_.length).sum)

  private def link(file: Path, near: Path): Option[Cached] =
    try {
      val linked = links.link(file, near)
      Some(Cached(linked, links.length(linked)))
    } catch {
      case error @ (_: IOException | _: UnsupportedOperationException) =>
        if (!hasWarned)
          logger.warn(s"$file and others cannot be cached: stores that are opened again are fetched whole", error)
        hasWarned = true
        None
    }

  private def remove(cached: Cached): Unit =
    try links.delete(cached.path)
    catch { case error: IOException => logger.warn(s"The unneeded file ${cached.path} could not be deleted", error) }
}
