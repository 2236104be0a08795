package org.apache.spark.sql.execution.streaming.state.dstl.files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.runtime.StreamingCheckpointConstants.{
  DIR_NAME_COMMITS,
  DIR_NAME_OFFSETS
}

/** What a directory is in a checkpoint, judged by its path; file managers are made for one directory each. */
private[dstl] sealed trait CheckpointDirectory

private[dstl] object CheckpointDirectory {

  /** `<root>/commits`: a batch is committed by creating an entry here. */
  final case class Commits(root: Path) extends CheckpointDirectory

  /** `<root>/offsets`: a batch is begun by creating an entry here. */
  final case class Offsets(root: Path) extends CheckpointDirectory

  /** `<root>/sources/<number>`: what a source has handed out, written before a batch is begun. */
  final case class Source(root: Path) extends CheckpointDirectory

  /** `<root>/state/<operator>/<partition>[/<store>]`: where Spark would write a store's changelogs. */
  final case class Store(root: Path, storeDirectory: String) extends CheckpointDirectory

  /** Anything else; passed through. */
  case object Other extends CheckpointDirectory

  private val StorePath = """(.+)/state/(\d{1,18}/\d{1,9}(?:/[^/]+)?)""".r

  private val SourcePath = """(.+)/sources/\d{1,9}""".r

  /** Classifies `path`, with roots made absolute so that driver and executors name a checkpoint alike. */
  def of(path: Path, configuration: Configuration): CheckpointDirectory = {
    val qualified = path.getFileSystem(configuration).makeQualified(path)
    qualified.toString match {
      case StorePath(root, store) => Store(new Path(root), store)
      case SourcePath(root) => Source(new Path(root))
      case _ if qualified.getParent == null => Other
      case _ if qualified.getName == DIR_NAME_COMMITS => Commits(qualified.getParent)
      case _ if qualified.getName == DIR_NAME_OFFSETS => Offsets(qualified.getParent)
      case _ => Other
    }
  }
}
