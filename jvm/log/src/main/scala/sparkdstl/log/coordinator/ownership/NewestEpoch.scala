package sparkdstl.log.coordinator.ownership

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}
import scala.util.Try

import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime

/** Who claimed the newest epoch of a checkpoint: whom a fenced driver's error names. */
object NewestEpoch {
  private val MaxMarkLength = 4096L

  /** Run and host. None if that cannot be told; never fails. */
  def claimant(
      location: QueryLocation,
      checkpoint: StorageClient,
      timeoutMillis: Long,
      runtime: ProtocolRuntime
  ): Future[Option[(UUID, String)]] = {
    implicit val executor: ExecutionContext = runtime.executor
    val newest = for {
      objects <- checkpoint.list(location.epochs, timeoutMillis).flatMap(_.asFuture)
      epochs = objects.flatMap(o => LogLayout.parseEpoch(o.path.getName))
      mark <- checkpoint.read(location.epoch(epochs.max), MaxMarkLength, timeoutMillis).flatMap(_.asFuture)
    } yield mark.flatMap(parse)
    newest.recover { case _ => None }
  }

  private[coordinator] def mark(run: UUID, host: String): Array[Byte] =
    s"claim $run $host\n".getBytes(UTF_8)

  private def parse(mark: Array[Byte]): Option[(UUID, String)] = new String(mark, UTF_8).trim.split(' ') match {
    case Array(_, run, host) => Try(UUID.fromString(run)).toOption.map(_ -> host)
    case _ => None
  }
}
