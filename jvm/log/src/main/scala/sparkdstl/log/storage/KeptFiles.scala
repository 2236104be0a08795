package sparkdstl.log.storage

import java.io.{IOException, InputStream}
import java.nio.file.Path

import scala.collection.mutable
import scala.util.Using

import org.slf4j.LoggerFactory

/**
 * Local files that stay when those who had them remove theirs: links, so that they take no room while both are there.
 *
 * Bounded: of what was not asked for, or kept anew, for longest all goes first. Nothing here is relied upon: what cannot be
 * kept is not, and what is there is looked at before it is handed out. Thread-safe.
 */
final class KeptFiles(links: LinkedFiles) {
  import KeptFiles._

  // Guarded by this; the owners used least recently first.
  private val owners = mutable.LinkedHashMap.empty[String, Map[String, Kept]]
  private var complained = false

  /**
   * From now on these files of `owner` are kept, and no others.
   *
   * @param files
   *   by names of which none ever stands for another content
   * @param near
   *   a directory on the same disk, which stays
   * @param maxBytes
   *   of all owners' files together
   */
  def keep(owner: String, files: Map[String, Path], near: Path, maxBytes: Long): Unit = synchronized {
    val before = owners.remove(owner).getOrElse(Map.empty)
    (before -- files.keySet).values.foreach(remove)
    val now = before.filter(of => files.contains(of._1)) ++ (files -- before.keySet).flatMap { case (name, file) =>
      link(file, near).map(name -> _)
    }
    owners.put(owner, now)
    while (bytes > maxBytes) letGo(owners.head._1)
  }

  /**
   * A file that is kept of `owner`. It may go at any time. One that is damaged, or gone, is kept no more.
   *
   * @param isWhole
   *   whether a file's content is what it should be; called without a lock
   */
  def find(owner: String, name: String)(isWhole: InputStream => Boolean): Option[Path] =
    kept(owner, name).filter { of =>
      val whole = Using(links.open(of.path))(isWhole).getOrElse(false)
      if (!whole) {
        logger.warn(s"${of.path}, kept as $name, is damaged; it is fetched again")
        forget(owner, name, of)
      }
      whole
    }.map(_.path)

  private def kept(owner: String, name: String): Option[Kept] = synchronized {
    val files = owners.remove(owner)
    files.foreach(owners.put(owner, _))
    files.flatMap(_.get(name))
  }

  private def forget(owner: String, name: String, damaged: Kept): Unit = synchronized {
    if (owners.get(owner).flatMap(_.get(name)).exists(_ eq damaged)) {
      owners.updateWith(owner)(_.map(_ - name)): Unit
      remove(damaged)
    }
  }

  /** Bytes of what is kept. */
  def bytes: Long = synchronized(owners.valuesIterator.flatMap(_.valuesIterator).map(_.length).sum)

  private def letGo(owner: String): Unit = owners.remove(owner).foreach(_.values.foreach(remove))

  private def link(file: Path, near: Path): Option[Kept] =
    try {
      val kept = links.link(file, near)
      Some(Kept(kept, links.length(kept)))
    } catch {
      case error @ (_: IOException | _: UnsupportedOperationException) =>
        if (!complained)
          logger.warn(s"$file and others cannot be kept: stores are fetched whole when they come back", error)
        complained = true
        None
    }

  private def remove(kept: Kept): Unit =
    try links.delete(kept.path)
    catch { case error: IOException => logger.warn(s"${kept.path} takes room that nobody needs", error) }
}

private object KeptFiles {
  private val logger = LoggerFactory.getLogger(classOf[KeptFiles])

  final case class Kept(path: Path, length: Long)
}
