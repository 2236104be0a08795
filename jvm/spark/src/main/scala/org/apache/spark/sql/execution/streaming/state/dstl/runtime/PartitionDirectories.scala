// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import scala.concurrent.{ExecutionContext, Future}
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.ProtocolErrors

import org.apache.spark.sql.execution.streaming.runtime.StreamingCheckpointConstants.DIR_NAME_STATE

/**
 * The directories `state/<operator>/<partition>` of a checkpoint. Spark's state reader lists them with the file system itself to
 * find partitions. The log leaves them empty, and tools that copy objects drop empty directories; a reader would then
 * omit the partitions. Thread-safe.
 */
private[dstl] final class PartitionDirectories(checkpoint: Checkpoint, resources: ProcessResources) {
  import PartitionDirectories._
  import checkpoint.{configuration, options, root}
  private implicit val executor: ExecutionContext = resources.runtime.executor
  private val files = new CheckpointFiles(root, configuration, options, resources)
  private val state = new Path(root, DIR_NAME_STATE)

  /** Creates the missing directories of these stores' partitions; fails with `DSTL_MISSING_PARTITIONS` if it cannot. */
  def restore(stores: Set[String]): Future[Unit] = missing(stores).flatMap { partitions =>
    Future.traverse(partitions) { partition =>
      files.createDirectory(new Path(state, partition), CreationMillis)
    }.map(_ => ()).recoverWith { case NonFatal(error) =>
      Future.failed(ProtocolErrors.missingPartitions(root, partitions, error))
    }
  }

  /** Fails with `DSTL_MISSING_PARTITIONS` if a directory of these stores' partitions is missing. */
  def check(stores: Set[String]): Future[Unit] = missing(stores).map { partitions =>
    if (partitions.nonEmpty) throw ProtocolErrors.missingPartitions(root, partitions)
  }

  /** Partitions as `<operator>/<partition>`, in their order. */
  private def missing(stores: Set[String]): Future[Vector[String]] = {
    val partitions = stores.map(_.split('/')).collect { case Array(operator, partition, _*) => (operator, partition) }
    Future.traverse(partitions.groupBy(_._1).toVector.sortBy(_._1.toLong)) { case (operator, of) =>
      list(operator).map(found => of.map(_._2).filterNot(found).toVector.sortBy(_.toInt).map(operator + "/" + _))
    }.map(_.flatten)
  }

  private def list(operator: String): Future[Set[String]] = files.listing(new Path(state, operator))
    .map(_.fold(Set.empty[String])(_.iterator.filter(_.isDirectory).map(_.getPath.getName).toSet))
}

private object PartitionDirectories {

  /** Short, because a reader may lack permission to write, which some storage reports late. */
  private val CreationMillis = 10000L
}
