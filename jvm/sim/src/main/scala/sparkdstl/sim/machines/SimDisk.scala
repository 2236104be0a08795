// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.machines

import java.io.{ByteArrayInputStream, IOException, InputStream}
import java.nio.file.{NoSuchFileException, Path}

import scala.collection.mutable
import scala.concurrent.{Future, Promise}
import scala.util.Try

import sparkdstl.log.storage.{LinkedFiles, LocalFiles}
import sparkdstl.sim.world.{Chance, FaultKind, Faults, Verdict}

/**
 * A host's local disk. It outlives the processes that write to it, and their files take room. A write may find
 * it full and leave a part of a file; existing files may be damaged at any time.
 */
final class SimDisk(chance: Chance, faults: Faults, verdict: => Verdict) {
  import SimDisk._

  private final class Content(var bytes: Array[Byte], var links: Int)

  private val files = mutable.TreeMap.empty[String, Content]
  private var used = 0L
  private var directories = 0

  /** A new, empty directory. */
  def newDirectory(): Path = {
    directories += 1
    Path.of(s"/disk/$directories")
  }

  def write(file: Path, bytes: Array[Byte]): Unit = {
    delete(file)
    val isFull = used + bytes.length > Capacity || faults.strikes(FaultKind.LocalDiskFull, chance)
    val written = if (isFull) bytes.take(chance.below(bytes.length + 1)) else bytes
    if (used + written.length <= Capacity) {
      files.put(file.toString, new Content(written, 1)): Unit
      used += written.length
    }
    if (isFull) throw new IOException(s"$file: No space left on device")
  }

  def read(file: Path): Array[Byte] = contentOf(file).bytes

  def link(file: Path, link: Path): Unit = {
    if (faults.strikes(FaultKind.LocalDiskFull, chance)) throw new IOException(s"$link: No space left on device")
    val content = contentOf(file)
    content.links += 1
    files.put(link.toString, content): Unit
  }

  def delete(file: Path): Unit = files.remove(file.toString).foreach { content =>
    content.links -= 1
    if (content.links == 0) used -= content.bytes.length
  }

  /** Removes, truncates or extends a file, or flips a bit of it. */
  def damage(): Unit = if (files.nonEmpty) {
    val (file, content) = files.iterator.drop(chance.below(files.size)).next()
    verdict.note(s"$file is damaged")
    chance.below(4) match {
      case 0 => delete(Path.of(file))
      case 1 =>
        val left = content.bytes.take(content.bytes.length / 2)
        used -= content.bytes.length - left.length
        content.bytes = left
      case 2 =>
        used += 1
        content.bytes = content.bytes :+ 0.toByte
      case _ if content.bytes.nonEmpty =>
        val at = chance.below(content.bytes.length)
        content.bytes = content.bytes.updated(at, (content.bytes(at) ^ 1 << chance.below(7)).toByte)
      case _ => ()
    }
  }

  private def contentOf(file: Path): Content =
    files.getOrElse(file.toString, throw new NoSuchFileException(file.toString))
}

private object SimDisk {

  /** Small, so that the leftovers of processes fill it. */
  private val Capacity = 400 * 1024
}

/** The view of one process on its host's disk; it writes below its own directory. */
final class ProcessDisk(disk: SimDisk, process: SimProcess) extends LocalFiles with LinkedFiles {
  private lazy val directory = disk.newDirectory()
  private var links = 0

  override def write(name: String, content: Array[Byte]): Future[Unit] =
    later(disk.write(directory.resolve(name), content))

  override def read(name: String): Future[Array[Byte]] = later(disk.read(directory.resolve(name)))

  override def delete(name: String): Future[Unit] = later(disk.delete(directory.resolve(name)))

  /** Writes a store's own file synchronously. */
  def writeNow(name: String, content: Array[Byte]): Path = {
    val file = near.resolve(name)
    disk.write(file, content)
    file
  }

  /** The directory of the stores' own files. */
  lazy val near: Path = disk.newDirectory()

  override def link(file: Path, near: Path): Path = {
    links += 1
    val to = directory.resolve(s"link-$links")
    disk.link(file, to)
    to
  }

  override def length(file: Path): Long = disk.read(file).length.toLong

  override def open(file: Path): InputStream = new ByteArrayInputStream(disk.read(file))

  override def delete(file: Path): Unit = disk.delete(file)

  private def later[T](action: => T): Future[T] = {
    val done = Promise[T]()
    val _ = process.after(1)(done.complete(Try(action)): Unit)
    done.future
  }
}
