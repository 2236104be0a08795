package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{Path => LocalPath}
import java.nio.file.StandardOpenOption.{CREATE, TRUNCATE_EXISTING, WRITE}

import scala.collection.mutable
import scala.concurrent.Future
import scala.util.Using

import org.apache.hadoop.fs.Path

import sparkdstl.log.request.{Outcome, StorageClient}

import org.apache.spark.sql.execution.streaming.state.dstl.runtime.Waiting

/**
 * A file that is to be brought to the local disk.
 *
 * @param length in bytes
 * @param to     replaced if it is there
 */
private[dstl] final case class Download(file: Path, length: Long, to: LocalPath)

/**
 * Brings files from storage to the local disk, in ranges of which several are fetched at once. Calls block, and can be
 * interrupted.
 *
 * @param atOnce        ranges that are fetched, or wait to be written, at one time
 * @param rangeLength   bytes of a range
 * @param timeoutMillis of a single request
 */
private[dstl] final class FileDownloads(
    storage: StorageClient,
    atOnce: Int,
    timeoutMillis: Long,
    rangeLength: Int = FileDownloads.RangeLength
) {
  import FileDownloads._

  /** Fetches all of them. What has arrived before one fails stays. */
  def fetch(downloads: Seq[Download]): Unit = {
    downloads.foreach(download => FileChannel.open(download.to, CREATE, WRITE, TRUNCATE_EXISTING).close())
    val remaining = downloads.iterator.flatMap(rangesOf)
    val underWay = mutable.Queue.empty[(Range, Future[Outcome[Option[Array[Byte]]]])]
    def startNext(): Unit = remaining.nextOption().foreach { range =>
      underWay.enqueue(range -> storage.readRange(range.of.file, range.offset, range.length, timeoutMillis))
    }
    (1 to atOnce).foreach(_ => startNext())
    while (underWay.nonEmpty) {
      val (range, bytes) = underWay.dequeue()
      write(range, Waiting.found(range.of.file, bytes))
      startNext()
    }
  }

  private def rangesOf(download: Download): Iterator[Range] =
    Iterator.iterate(0L)(_ + rangeLength).takeWhile(_ < download.length).map { offset =>
      Range(download, offset, math.min(rangeLength.toLong, download.length - offset).toInt)
    }

  private def write(range: Range, bytes: Array[Byte]): Unit =
    Using.resource(FileChannel.open(range.of.to, WRITE)) { channel =>
      val buffer = ByteBuffer.wrap(bytes)
      while (buffer.hasRemaining) channel.write(buffer, range.offset + buffer.position())
    }
}

private object FileDownloads {

  /** Large enough that a request's own time does not count. */
  val RangeLength: Int = 4 * 1024 * 1024

  private final case class Range(of: Download, offset: Long, length: Int)
}
