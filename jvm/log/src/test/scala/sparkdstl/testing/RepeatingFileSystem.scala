package sparkdstl.testing

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/**
 * A client that hears no reply to any write, and makes each a second time by itself: of an exclusive one it is told that the
 * object is there, which it has made. Set up by [[RepeatingFileSystem.configure]].
 */
final class RepeatingFileSystem extends DirectWriteFileSystem(RepeatingFileSystem.Scheme) {
  override protected def before(operation: Operation, path: Path): Unit = ()

  override protected def publishing(path: Path, bytes: Long)(publish: => Unit): Unit = {
    publish
    publish
  }
}

object RepeatingFileSystem {
  val Scheme = "repeating"

  def configure(configuration: Configuration): Configuration = {
    configuration.set(s"fs.$Scheme.impl", classOf[RepeatingFileSystem].getName)
    configuration
  }
}
