package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path => LocalPath}
import java.nio.file.StandardOpenOption.{CREATE_NEW, WRITE}

import scala.collection.mutable
import scala.concurrent.Future
import scala.util.Using

import org.apache.hadoop.fs.Path

import sparkdstl.log.read.RecoveryProgress
import sparkdstl.log.request.StorageClient
import sparkdstl.log.storage.StorageOperation.ReadRange

import org.apache.spark.sql.execution.streaming.state.dstl.runtime.Waiting

/**
 * A part of a file that is to be brought to the local disk.
 *
 * @param offset in the file, in bytes
 * @param length in bytes
 * @param fetch  asks storage for it
 */
private[dstl] final case class Piece(offset: Long, length: Int, fetch: () => Future[Array[Byte]])

/**
 * A file that is to be brought to the local disk.
 *
 * @param to     replaced if it is there
 * @param length in bytes
 * @param kept   the same file, if it is on the local disk still
 * @param pieces all of it
 */
private[dstl] final case class Download(
    to: LocalPath,
    length: Long,
    kept: () => Option[LocalPath],
    pieces: () => Iterator[Piece]
)

/**
 * Brings files from storage to the local disk, in pieces of which several are fetched at once. Calls block, and can be
 * interrupted.
 *
 * @param atOnce        pieces that are fetched, or wait to be written, at one time
 * @param rangeLength   bytes of a piece of what is a file on storage as well
 * @param timeoutMillis of a single request
 */
private[dstl] final class FileDownloads(
    storage: StorageClient,
    atOnce: Int,
    timeoutMillis: Long,
    waiting: Waiting,
    rangeLength: Int = FileDownloads.RangeLength
) {

  /**
   * A file on storage as a download.
   *
   * @param length in bytes
   */
  def ofFile(file: Path, length: Long, to: LocalPath): Download = Download(
    to,
    length,
    () => None,
    () =>
      Iterator.iterate(0L)(_ + rangeLength).takeWhile(_ < length).map { offset =>
        val of = math.min(rangeLength.toLong, length - offset).toInt
        Piece(offset, of, () => Waiting.willBeFound(file, storage.run(ReadRange(file, offset, of), timeoutMillis)))
      }
  )

  /**
   * Fetches all of them. Those that have arrived before one fails stay.
   *
   * @param progress of the store that is loaded with them
   */
  def fetch(downloads: Seq[Download], progress: Option[RecoveryProgress#LoadingStore] = None): Unit = {
    downloads.foreach(download => Files.deleteIfExists(download.to): Unit)
    val missing = downloads.filterNot(isLinked(_, progress))
    missing.foreach(download => FileChannel.open(download.to, CREATE_NEW, WRITE).close())
    val remaining = missing.iterator.flatMap(download => download.pieces().map(download.to -> _))
    val underWay = mutable.Queue.empty[(LocalPath, Piece, Future[Array[Byte]])]
    def startNext(): Unit =
      remaining.nextOption().foreach { case (to, piece) => underWay.enqueue((to, piece, piece.fetch())) }
    (1 to atOnce).foreach(_ => startNext())
    while (underWay.nonEmpty) {
      val (to, piece, bytes) = underWay.dequeue()
      write(to, piece.offset, waiting.on(bytes))
      progress.foreach(_.fetched(piece.length.toLong))
      startNext()
    }
  }

  /** A kept file may be gone by now. */
  private def isLinked(download: Download, progress: Option[RecoveryProgress#LoadingStore]): Boolean =
    download.kept().exists { file =>
      try {
        Files.createLink(download.to, file): Unit
        progress.foreach(_.foundLocally(download.length))
        true
      } catch { case _: IOException => false }
    }

  private def write(to: LocalPath, offset: Long, bytes: Array[Byte]): Unit =
    Using.resource(FileChannel.open(to, WRITE)) { channel =>
      val buffer = ByteBuffer.wrap(bytes)
      while (buffer.hasRemaining) channel.write(buffer, offset + buffer.position())
    }
}

private object FileDownloads {

  /** Large enough that a request's own time does not count. */
  val RangeLength: Int = 4 * 1024 * 1024
}
