// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import scala.util.matching.Regex

import org.apache.hadoop.fs.Path

/** Answers no request while its gate is shut. All instances in this JVM share the gate. */
final class GatedFileSystem extends DirectWriteFileSystem(GatedFileSystem.Scheme) {
  override protected def before(operation: Operation, path: Path): Unit = GatedFileSystem.pass(path)

  override protected def publishing(path: Path, bytes: Long)(publish: => Unit): Unit = publish
}

object GatedFileSystem extends FileSystemScheme("gated", classOf[GatedFileSystem]) {

  // All guarded by this.
  private var trigger = Option.empty[Regex]
  private var held = Option.empty[Regex]
  private var shut = false
  private var waiting = 0

  /** Shuts the gate just before the first request for a path that matches `path`. */
  def shutAt(path: Regex): Unit = synchronized { trigger = Some(path) }

  /** Shuts the gate for requests for paths that match `path`, and for no others. */
  def hold(path: Regex): Unit = synchronized { held = Some(path) }

  /** Opens the gate for waiting and later requests. */
  def open(): Unit = synchronized {
    trigger = None
    held = None
    shut = false
    notifyAll()
  }

  /** The number of requests that wait at the gate. */
  def waitingRequests: Int = synchronized(waiting)

  private def pass(path: Path): Unit = synchronized {
    if (trigger.exists(_.findFirstIn(path.toString).nonEmpty)) shut = true
    waiting += 1
    try while (shut || held.exists(_.findFirstIn(path.toString).nonEmpty)) wait()
    finally waiting -= 1
  }
}
