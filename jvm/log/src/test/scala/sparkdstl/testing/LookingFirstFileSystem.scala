package sparkdstl.testing

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/**
 * A client of an object store that knows no conditional writes: it looks when a stream is opened, and replaces when it is
 * closed. Set up by [[LookingFirstFileSystem.configure]].
 */
final class LookingFirstFileSystem extends DirectWriteFileSystem(LookingFirstFileSystem.Scheme) {
  override protected def before(operation: Operation, path: Path): Unit = ()

  override protected def publishing(path: Path, bytes: Long)(publish: => Unit): Unit = publish

  override protected def createsExclusively: Boolean = false
}

object LookingFirstFileSystem {
  val Scheme = "looking"

  /** The configuration entry that makes Hadoop find this file system. */
  val entry: (String, String) = s"fs.$Scheme.impl" -> classOf[LookingFirstFileSystem].getName

  def configure(configuration: Configuration): Configuration = {
    configuration.set(entry._1, entry._2)
    configuration
  }
}
