package sparkdstl.log.storage

import java.io.IOException
import java.nio.file.{Files, Path}

import scala.collection.mutable

import org.slf4j.LoggerFactory

/**
 * Local files that stay when those who had them remove theirs: hard links, so that they take no room while both are there.
 *
 * Bounded: of what was not asked for, or kept anew, for longest all goes first. Nothing here is relied upon: what cannot be
 * kept is not, and what is found may be damaged. Thread-safe.
 *
 * @param makeDirectory
 *   makes a directory on the disk of that one, to be removed when the process ends
 */
final class KeptFiles(makeDirectory: Path => Path) {
  import KeptFiles._

  // Guarded by this; the owners used least recently first.
  private val owners = mutable.LinkedHashMap.empty[String, Map[String, Kept]]
  private val directories = mutable.HashMap.empty[Path, Path]
  private var linked = 0L
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

  /** A file that is kept of `owner`. It may go at any time. */
  def find(owner: String, name: String): Option[Path] = synchronized {
    val files = owners.remove(owner)
    files.foreach(owners.put(owner, _))
    files.flatMap(_.get(name)).map(_.path)
  }

  /** What was found is not what it should be. */
  def forget(owner: String, name: String): Unit = synchronized {
    owners.updateWith(owner)(_.map { files =>
      files.get(name).foreach(remove)
      files - name
    }): Unit
  }

  /** Bytes of what is kept. */
  def bytes: Long = synchronized(owners.valuesIterator.flatMap(_.valuesIterator).map(_.length).sum)

  private def letGo(owner: String): Unit = owners.remove(owner).foreach(_.values.foreach(remove))

  private def link(file: Path, near: Path): Option[Kept] =
    try {
      val directory = directories.getOrElseUpdate(near, makeDirectory(near))
      linked += 1
      val kept = Files.createLink(directory.resolve(s"$linked"), file)
      Some(Kept(kept, Files.size(kept)))
    } catch {
      case error @ (_: IOException | _: UnsupportedOperationException) =>
        if (!complained)
          logger.warn(s"$file and others cannot be kept: stores are fetched whole when they come back", error)
        complained = true
        None
    }

  private def remove(kept: Kept): Unit =
    try Files.deleteIfExists(kept.path): Unit
    catch { case error: IOException => logger.warn(s"${kept.path} takes room that nobody needs", error) }
}

private object KeptFiles {
  private val logger = LoggerFactory.getLogger(classOf[KeptFiles])

  final case class Kept(path: Path, length: Long)
}
