package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.io.IOException
import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.request.RequestKind
import sparkdstl.log.storage.{OperationKind, StorageErrors}

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state.StateStoreId
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun

/**
 * The directories `state/<operator>/<partition>` of a checkpoint. Spark's state reader lists them with the file system itself to
 * find partitions. The log leaves them empty, and tools that copy objects drop empty directories: a reader would leave such
 * partitions out. Thread-safe.
 */
private[dstl] final class PartitionDirectories(
    root: Path,
    configuration: Configuration,
    options: LogOptions,
    environment: DstlEnvironment
) {
  import PartitionDirectories._
  private implicit val executor: ExecutionContext = environment.runtime.executor
  private val fileSystem = root.getFileSystem(configuration)
  private val store = environment.store(root, configuration, options)
  private val requests = environment.requests(root, options)
  private val state = new Path(root, "state")

  /** Creates the missing directories of these stores' partitions; fails with `DSTL_MISSING_PARTITIONS` if it cannot. */
  def restore(stores: Set[String]): Future[Unit] = missing(stores).flatMap { partitions =>
    Future.traverse(partitions)(create).map(_ => ()).recoverWith { case NonFatal(error) =>
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

  private def list(operator: String): Future[Set[String]] = {
    val directory = new Path(state, operator)
    request(OperationKind.List, directory, options.commitTimeoutMs) {
      try fileSystem.listStatus(directory).iterator.filter(_.isDirectory).map(_.getPath.getName).toSet
      catch { case error if StorageErrors.meansMissing(error) => Set.empty[String] }
    }
  }

  private def create(partition: String): Future[Unit] = {
    val directory = new Path(state, partition)
    request(OperationKind.Create, directory, CreationMillis) {
      if (!fileSystem.mkdirs(directory)) throw new IOException(s"$directory was not created")
    }
  }

  private def request[T](operation: OperationKind, directory: Path, timeoutMillis: Long)(attempt: => T): Future[T] =
    requests.run(RequestKind.of(operation), s"${operation.name} of $directory", timeoutMillis) { _ =>
      store.attempt(operation -> directory)(attempt)
    }.outcome.flatMap(_.orElseFail(ProtocolErrors.unreadable(directory, _)))
}

private[dstl] object PartitionDirectories {

  /** A reader may have no permission to write, and storage need not say so at once. */
  private val CreationMillis = 10000L

  /** Creates what is missing before a state reader lists partitions; it opens an entry of `offsets/` before that. */
  def restoreForReader(
      root: Path,
      configuration: Configuration,
      options: LogOptions,
      environment: DstlEnvironment
  ): Unit = environment.driver.filter(driver => !driver.isStarting && driver.drivenHere(root).isEmpty).foreach { _ =>
    val reader = environment.workers.of(root, UUID.randomUUID(), configuration, options).reader
    val directories = new PartitionDirectories(root, configuration, options, environment)
    environment.waiting.on(reader.newestStores().flatMap(directories.restore)(environment.runtime.executor))
  }

  /**
   * Fails in a state reader's task of the first partition if the driver has not found all partitions: its session may lack the
   * file manager. It creates none, so that a second attempt of the task fails as well.
   */
  def checkForReader(
      store: StateStoreId,
      worked: => WorkedRun,
      configuration: Configuration,
      options: LogOptions
  ): Unit =
    if (store.partitionId == 0 && TaskContext.get() != null && CurrentBatch.get.isEmpty) {
      val run = worked
      val directories = new PartitionDirectories(new Path(run.id.root), configuration, options, run.environment)
      val ofOperator = (all: Set[String]) => all.filter(_.startsWith(s"${store.operatorId}/"))
      run.waiting.on(
        run.reader.newestStores().flatMap(all => directories.check(ofOperator(all)))(run.environment.runtime.executor)
      )
    }
}
