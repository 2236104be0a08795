package sparkdstl.log.coordinator.retention

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.QueryLocation
import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime

/** Somebody wants the newest commit entry deleted: a user who goes back, or a tool that purges everything. */
private[retention] final class GoingBack(
    location: QueryLocation,
    checkpoint: StorageClient,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  /**
   * The entries that go now, the newest first: with it the unbroken run of entries below it whose deletion was asked
   * before, unless that run reaches the oldest. Then it was a purge of everything that came before, and what runs again
   * is the newest batch that was begun, on the state before it.
   *
   * @param there
   *   batches of the entries that are on storage, in ascending order: at least the newest
   */
  def entries(there: Vector[Long], asked: Set[Long]): Future[Vector[Long]] = {
    val newest = there.last
    val below = there.init.reverse
    val withIt = below.takeWhile(asked)
    if (withIt.size < below.size) Future.successful(newest +: withIt)
    else isBegun(newest + 1).map(begun => if (begun) Vector.empty else Vector(newest))
  }

  /** Deletes entries one after another, so that a stop in between leaves a checkpoint that is one. */
  def delete(batches: Vector[Long])(gone: Long => Unit): Future[Unit] =
    batches.foldLeft(Future.unit) { (before, batch) =>
      before.flatMap(_ => checkpoint.delete(Seq(location.entry(batch)), timeoutMillis)).flatMap(_.asFuture)
        .map(_ => gone(batch))
    }

  /** Whether Spark has begun the batch: whether it has an entry in `offsets/`. */
  private def isBegun(batch: Long): Future[Boolean] =
    checkpoint.readTail(new Path(new Path(location.root, "offsets"), batch.toString), 1, timeoutMillis)
      .flatMap(_.asFuture).map(_.nonEmpty)
}
