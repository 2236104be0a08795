// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import scala.util.matching.Regex

import org.apache.hadoop.fs.{FileStatus, Path}

/** Answers no request while its gate is shut. All instances in this JVM share the gate. */
final class GatedFileSystem extends DirectWriteFileSystem(GatedFileSystem.Scheme) {
  override protected def before(operation: Operation, path: Path): Unit = GatedFileSystem.pass(path)

  override def listStatus(path: Path): Array[FileStatus] = {
    val found = super.listStatus(path)
    GatedFileSystem.answer(path)
    found
  }
}

object GatedFileSystem extends FileSystemScheme("gated", classOf[GatedFileSystem]) {

  // All guarded by this.
  private var trigger = Option.empty[Regex]
  private var held = Option.empty[Regex]
  private var heldAnswers = Option.empty[Regex]
  private var shut = false
  private var waiting = 0

  /** Shuts the gate just before the first request for a path that matches `path`. */
  def shutAt(path: Regex): Unit = synchronized { trigger = Some(path) }

  /** Shuts the gate for requests for paths that match `path`, and for no others. */
  def hold(path: Regex): Unit = synchronized { held = Some(path) }

  /** Keeps the answers to lists of paths that match `path`. */
  def holdAnswers(path: Regex): Unit = synchronized { heldAnswers = Some(path) }

  /** Opens the gate for waiting and later requests. */
  def open(): Unit = synchronized {
    trigger = None
    held = None
    heldAnswers = None
    shut = false
    notifyAll()
  }

  /** The number of requests that wait at the gate. */
  def waitingRequests: Int = synchronized(waiting)

  private def pass(path: Path): Unit = synchronized {
    if (matches(trigger, path)) shut = true
    waitWhile(shut || matches(held, path))
  }

  private def answer(path: Path): Unit = synchronized(waitWhile(matches(heldAnswers, path)))

  private def matches(pattern: Option[Regex], path: Path): Boolean =
    pattern.exists(_.findFirstIn(path.toString).nonEmpty)

  private def waitWhile(isShut: => Boolean): Unit = {
    waiting += 1
    try while (isShut) wait()
    finally waiting -= 1
  }
}
