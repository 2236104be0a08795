package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.DstlException
import sparkdstl.log.format.Writer

import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.util.Utils

/**
 * The runs of streaming queries on this driver: at most one current run per checkpoint. A run is over when the thread that
 * drives its query has ended.
 */
private[dstl] final class RunRegistry(executors: ExecutorDirectory) extends Logging {
  private case class Driven(coordinator: RunCoordinator, by: Thread)

  private val runs = new ConcurrentHashMap[String, Driven]

  def all: Seq[RunCoordinator] = runs.keySet.asScala.toSeq.flatMap(current)

  /** The coordinator of the run that is current on this checkpoint, if the driver coordinates one there. */
  def current(root: String): Option[RunCoordinator] = {
    val known = Option(runs.get(root))
    known.filterNot(_.by.isAlive).foreach(over => runs.remove(root, over))
    known.filter(_.by.isAlive).map(_.coordinator)
  }

  /** The coordinator of `run`, if it is the current one on this checkpoint. */
  def of(root: String, run: UUID): Option[RunCoordinator] = current(root).filter(_.run == run)

  /**
   * Begins a run, which the calling thread drives, unless it has begun: reads from storage what is committed, and supersedes the run before.
   *
   * @throws sparkdstl.log.error.DstlException if the log cannot be used or belongs to another query
   */
  def begin(root: Path, run: UUID, configuration: Configuration, options: LogOptions): RunCoordinator =
    of(root.toString, run).getOrElse(synchronized {
      of(root.toString, run).getOrElse {
        val services = Services.of(options)
        val paths = QueryPathsFactory.of(root, configuration, options)
        new BasePathOwner(
          paths,
          checkpoint => Storages.of(checkpoint, configuration, options.copy(inMemory = false)),
          services.writes
        ).claim()
        val committed =
          try CommittedBatches.load(root, paths.base, paths.checkpoint, paths.log)
          catch {
            case e: DstlException => throw e
            case NonFatal(e) => throw DstlErrors.unusableBasePath(paths.base, e)
          }
        val writer = Writer(run, Utils.localCanonicalHostName(), SparkEnv.get.conf.getAppId)
        val coordinator = new RunCoordinator(
          paths,
          options,
          writer,
          services.writes,
          services.newDiscarder(paths.log),
          services.background,
          executors,
          committed,
          () => System.currentTimeMillis()
        )
        coordinator.start()
        runs.put(root.toString, Driven(coordinator, Thread.currentThread()))
        logInfo(
          s"Run $run keeps the state of $root in the log at ${paths.base}; last committed batch: ${committed.last}"
        )
        coordinator
      }
    })
}

/** Storage for the checkpoint and for the log of one query. */
private[dstl] object QueryPathsFactory {
  def of(root: Path, configuration: Configuration, options: LogOptions): QueryPaths = {
    val base = options.basePath.fold(new Path(root, "dstl")) { path =>
      val configured = new Path(path)
      configured.getFileSystem(configuration).makeQualified(configured)
    }
    QueryPaths(
      root,
      base,
      options.basePath.map(_ => base.toString),
      Storages.of(root, configuration, options.copy(inMemory = false)),
      Storages.of(base, configuration, options)
    )
  }
}
