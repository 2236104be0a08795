// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import org.apache.hadoop.fs.Path

/** Counts the requests to all its instances in this JVM. Set up by [[CountingFileSystem.configure]]. */
final class CountingFileSystem extends DirectWriteFileSystem(CountingFileSystem.Scheme) {
  override protected def before(operation: Operation, path: Path): Unit = CountingFileSystem.record(operation, path)
}

object CountingFileSystem extends FileSystemScheme("counting", classOf[CountingFileSystem]) {

  /** The requests since the last reset, in order. */
  final case class Counts(requests: Vector[(Operation, Path)]) {
    val paths: Map[Operation, Seq[Path]] =
      requests.groupBy(_._1).map { case (operation, of) => operation -> of.map(_._2) }

    def apply(operation: Operation): Int = pathsOf(operation).size

    def pathsOf(operation: Operation): Seq[Path] = paths.getOrElse(operation, Nil)

    def written: Seq[Path] = pathsOf(Operation.Write)
  }

  // Guarded by this.
  private var requests = Vector.empty[(Operation, Path)]

  def snapshot(): Counts = synchronized(Counts(requests))

  def reset(): Unit = synchronized { requests = Vector.empty }

  private def record(operation: Operation, path: Path): Unit = synchronized {
    requests :+= operation -> path
  }
}
