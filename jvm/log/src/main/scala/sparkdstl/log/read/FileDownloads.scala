// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.io.{FileNotFoundException, IOException}
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path => LocalPath}
import java.nio.file.StandardOpenOption.{CREATE_NEW, WRITE}

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}
import scala.util.Using

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.request.StorageClient
import sparkdstl.log.storage.StorageOperation.ReadRange

/** A part of a file for download, by its offset in the file; `fetch` reads it from storage. */
final case class Piece(offset: Long, length: Int, fetch: () => Future[Array[Byte]])

/** The download of a file to the local path `to`, which is replaced: from a cache on the local disk, or in pieces. */
final case class Download(to: LocalPath, length: Long, cached: () => Option[LocalPath], pieces: () => Iterator[Piece])

/**
 * Downloads files from storage to the local disk, in pieces of which `atOnce` are fetched or wait to be written. `await` blocks
 * the caller until a piece has arrived. A piece of a plain file has `rangeLength` bytes.
 */
final class FileDownloads(
    storage: StorageClient,
    atOnce: Int,
    timeoutMillis: Long,
    await: Future[Array[Byte]] => Array[Byte],
    rangeLength: Int = FileRange.MaxLength
) {

  /** The download of a plain file of `length` bytes. */
  def ofFile(file: Path, length: Long, to: LocalPath): Download = {
    def pieces() = Iterator.iterate(0L)(_ + rangeLength).takeWhile(_ < length).map { offset =>
      val of = math.min(rangeLength.toLong, length - offset).toInt
      Piece(offset, of, () => read(file, ReadRange(file, offset, of)))
    }
    Download(to, length, () => None, () => pieces())
  }

  private def read(file: Path, range: ReadRange): Future[Array[Byte]] = {
    implicit val executor: ExecutionContext = ExecutionContext.parasitic
    storage.run(range, timeoutMillis).flatMap(_.orElseFail(ProtocolErrors.unreadable(file, _)))
      .map(_.getOrElse(throw new FileNotFoundException(s"File $file does not exist")))
  }

  /** Downloads all files of the store that reports `progress`. After a failure all files stay, incomplete ones too. */
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
      write(to, piece.offset, await(bytes))
      progress.foreach(_.fetched(piece.length.toLong))
      startNext()
    }
  }

  /** Links a cached file, which may have been evicted; false if it was not linked. */
  private def isLinked(download: Download, progress: Option[RecoveryProgress#LoadingStore]): Boolean =
    download.cached().exists { file =>
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
