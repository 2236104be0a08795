package sparkdstl.testing

import org.apache.hadoop.fs.Path

/** A client that repeats each write, so that an exclusive one finds the object that it has made itself. */
final class RepeatingFileSystem extends DirectWriteFileSystem(RepeatingFileSystem.Scheme) {
  override protected def publishing(path: Path, bytes: Long)(publish: => Unit): Unit = {
    publish
    publish
  }
}

object RepeatingFileSystem extends FileSystemScheme("repeating", classOf[RepeatingFileSystem])
