// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions

import org.apache.spark.sql.execution.streaming.runtime.StreamingCheckpointConstants.{
  DIR_NAME_COMMITS,
  DIR_NAME_OFFSETS
}
import org.apache.spark.sql.execution.streaming.state.dstl.driver.DriverSide
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{Checkpoint, CheckpointFiles, ProcessResources}
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkerSide

/**
 * Finds the handler of a checkpoint directory by its path. Roots are absolute, so driver and executors use the same name for a
 * checkpoint.
 */
private[dstl] object CheckpointDirectory {
  private val StorePath = """(?s)(.+)/state/(\d{1,18}/\d{1,9}(?:/[^/]+)?)""".r
  // A number, or since Spark 4.2 the name that the query gives its source. It may also be a checkpoint of that name, which works.
  private val SourcePath = """(?s)(.+)/sources/\w+""".r
  private val OperatorPath = """(?s)(.+)/state/\d{1,18}/_metadata/v2""".r

  /** The handler of a directory. */
  def handler(
      path: Path,
      configuration: Configuration,
      resources: ProcessResources,
      driver: Option[DriverSide],
      workers: WorkerSide
  ): PlainDirectory = {
    val options = LogOptions.parse(configuration)
    val directory = resources.qualified(path, configuration)
    val files = new CheckpointFiles(
      path,
      configuration,
      options,
      resources,
      () => driver.flatMap(_.startOf(directory)),
      () => driver.exists(!_.hasCommitted(directory))
    )
    def checkpoint(root: Path) = Checkpoint(root, configuration, options)
    // The names first: the path of a checkpoint may itself look like that of a store.
    directory.toString match {
      case _ if directory.getParent == null => new PlainDirectory(files)
      case _ if directory.getName == DIR_NAME_COMMITS =>
        new CommitsDirectory(checkpoint(directory.getParent), files, driver, resources.waiting)
      case _ if directory.getName == DIR_NAME_OFFSETS =>
        new OffsetsDirectory(checkpoint(directory.getParent), files, driver, resources, workers)
      case SourcePath(root) => new SourceDirectory(checkpoint(rootOf(root)), files, driver, resources.waiting)
      case OperatorPath(root) => new OperatorDirectory(rootOf(root), files)
      case _ => storeIn(directory, configuration, options, workers).map(new StoreDirectory(_, files))
          .getOrElse(driver.fold(new PlainDirectory(files))(new RootDirectory(directory, files, _)))
    }
  }

  /** The store of a directory; None if it is no store's. */
  def storeAt(
      path: Path,
      configuration: Configuration,
      resources: ProcessResources,
      workers: WorkerSide
  ): Option[LoggedStore] =
    storeIn(resources.qualified(path, configuration), configuration, LogOptions.parse(configuration), workers)

  private def storeIn(
      directory: Path,
      configuration: Configuration,
      options: LogOptions,
      workers: WorkerSide
  ): Option[LoggedStore] = directory.toString match {
    case StorePath(root, name) =>
      Some(new LoggedStore(Checkpoint(rootOf(root), configuration, options), name, workers))
    case _ => None
  }

  /** The root of a bucket is the parent of its directories only with a slash. */
  private def rootOf(path: String): Path = new Path(s"$path/")
}
