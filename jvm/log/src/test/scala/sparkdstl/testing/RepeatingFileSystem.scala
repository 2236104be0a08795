// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import org.apache.hadoop.fs.Path

/** A client that repeats each write, so that an exclusive one conflicts with its own object. */
final class RepeatingFileSystem extends DirectWriteFileSystem(RepeatingFileSystem.Scheme) {
  override protected def publishing(path: Path, bytes: Long)(publish: => Unit): Unit = {
    publish
    publish
  }
}

object RepeatingFileSystem extends FileSystemScheme("repeating", classOf[RepeatingFileSystem])
