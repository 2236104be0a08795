package sparkdstl.log.coordinator.retention

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.QueryLocation
import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime

/** Which batches Spark has begun: those that have an entry in `offsets/`. */
private[coordinator] object BegunBatches {
  def isBegun(
      location: QueryLocation,
      checkpoint: StorageClient,
      batch: Long,
      timeoutMillis: Long,
      runtime: ProtocolRuntime
  ): Future[Boolean] = {
    implicit val executor: ExecutionContext = runtime.executor
    val offsets = new Path(new Path(location.root, "offsets"), batch.toString)
    checkpoint.readTail(offsets, 1, timeoutMillis).flatMap(_.asFuture).map(_.nonEmpty)
  }
}
