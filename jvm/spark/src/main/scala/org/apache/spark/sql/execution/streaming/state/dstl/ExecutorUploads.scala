package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID
import java.util.concurrent.atomic.AtomicLong

import scala.concurrent.ExecutionContext
import scala.util.{Failure, Success}

import sparkdstl.log.FailPoints
import sparkdstl.log.config.LogOptions
import sparkdstl.log.format._
import sparkdstl.log.upload._

import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.util.ThreadUtils

/** A chunk of a segment, as the uploader carries it. */
private[dstl] final class SegmentChunk(val key: SegmentKey, val bytes: Array[Byte]) extends Chunk {
  override def label: String = key.relativePath
  override def size: Int = bytes.length
}

/**
 * Packs segments' chunks into a data file. The file's own index names them, for people who look at it; recovery goes by the
 * batch log's.
 */
private[dstl] final class DataFileEncoder(writer: Writer) extends ChunkFileEncoder[SegmentChunk] {
  override def encode(chunks: Seq[SegmentChunk]): EncodedFile = {
    FailPoints.hit("executor.before-upload", chunks.head.key.batch)
    val file = new LogFileWriter(LogFileKind.DataFile, chunks.iterator.map(_.bytes.length).sum + 1024)
    val parts = chunks.map(chunk => file.append(chunk.bytes))
    val entries = chunks.zip(parts).map { case (chunk, part) => SegmentEntry(chunk.key, Vector(part)) }
    val content = file.finish(LogFileIndex(LogFileKind.DataFile, writer, None, RunHistory.empty, entries.toVector))
    EncodedFile(content, parts.map(part => ChunkPosition(part.offset, part.length, part.crc)).toIndexedSeq)
  }
}

/**
 * The uploads of one run on this executor, and the word of them to the driver.
 *
 * @param endpoint where the driver can ask for a flush; set up when first needed
 */
private[dstl] final class ExecutorUploads(
    paths: QueryPaths,
    run: UUID,
    options: LogOptions,
    services: Services,
    executor: String,
    application: String,
    host: String,
    coordinator: CoordinatorClient,
    endpoint: () => RpcEndpointRef
) extends SegmentUploads with Logging {

  private implicit val sameThread: ExecutionContext = ThreadUtils.sameThread

  private val tickets = new AtomicLong
  // An executor may come to upload for a run again after it has closed its first uploader, and count from one again.
  private val instance = UUID.randomUUID().toString.take(8)
  private val retries = services.newUploadRetries()

  private val uploader = new LogUploader[SegmentChunk](
    paths.log,
    paths.base,
    (sequence, attempt) =>
      LogLayout.dataFile(run, executor, sequence.toLong, attempt, instance),
    new DataFileEncoder(Writer(run, host, application)),
    retries,
    services.newDiscarder(paths.log),
    UploaderOptions(options.persistSizeThreshold, options.uploadMaxInFlight),
    services.timer,
    services.uploadMetrics
  )

  override def put(key: SegmentKey, bytes: Array[Byte]): SegmentUpload =
    new Upload(key, tickets.incrementAndGet(), uploader.put(new SegmentChunk(key, bytes)), bytes.length.toLong)

  // Each time: a driver that has lost the connection for a moment has forgotten this executor.
  override def announce(): Unit = coordinator.register(executor, endpoint())

  /** Uploads what waits, at once. */
  def flush(): Unit = uploader.flush()

  /** Bytes that are not yet durable. */
  def bytesInFlight: Long = uploader.bytesInFlight

  def close(): Unit = {
    uploader.close()
    retries.close()
  }

  private final class Upload(key: SegmentKey, ticket: Long, pending: PendingChunk, length: Long) extends SegmentUpload {

    override def part: SealedPart = pending.location.value match {
      case Some(Success(location)) => SealedPart.Stored(placeOf(location))
      case Some(Failure(error)) => throw error
      case None => SealedPart.Pending(ticket, length)
    }

    override def reportTo(coordinator: CoordinatorClient): Unit =
      pending.location.onComplete { outcome =>
        val result = outcome.fold(error => Left(error.getMessage), location => Right(placeOf(location)))
        report(coordinator, UploadReport(executor, ticket, result), ExecutorUploads.ReportAttempts)
      }

    private def report(coordinator: CoordinatorClient, how: UploadReport, attempts: Int): Unit =
      coordinator.report(how).failed.foreach { error =>
        if (attempts > 1) report(coordinator, how, attempts - 1)
        else
          logWarning(
            s"The driver was not told how the upload of ${key.relativePath} ended; the batch will wait for it",
            error
          )
      }

    override def discard(): Unit = pending.discard()

    private def placeOf(location: ChunkLocation): SegmentPart =
      SegmentPart(Some(location.file), location.offset, location.length, location.crc)
  }
}

private object ExecutorUploads {

  /** Each waits for the driver's answer as long as `spark.rpc.askTimeout` says. */
  private val ReportAttempts = 3
}
