// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}
import scala.util.{Failure, Success}

import sparkdstl.log.error.{Causes, DamagedLogException, LogErrors}
import sparkdstl.log.format.{CommitEntry, EntryInspection}
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.storage.{ObjectTail, StorageErrors}
import sparkdstl.log.storage.StorageOperation.{ReadRange, ReadTail}

/**
 * Reads commit entries from storage. Version v of a store is in the entry of batch v - 1 or in a plain file. A read fetches
 * `fetchLength` bytes of an entry's end, for the index and as many segments as fit. The disk cache comes with the reader's id.
 * `lengths` are known lengths of entries, each of which saves a request.
 */
final class EntryReader(
    storage: QueryStorage,
    fetchLength: Int,
    diskCache: Option[(DiskCache, UUID)] = None,
    lengths: Long => Option[Long] = _ => None
) {
  import storage.location
  private implicit val executor: ExecutionContext = storage.runtime.executor

  /**
   * Fails with a [[sparkdstl.log.error.DstlException]] if storage does not answer in time or the entry is damaged.
   *
   * @param length of the entry in a listing
   */
  def read(batch: Long, length: Option[Long] = None): Future[EntryFound] = {
    val known = length.orElse(lengths(batch))
    readFrom(batch, fetchLength, known, diskCache).transformWith {
      // Since the listing, the entry may have been deleted and created again.
      case Success(EntryFound.Plain) if known.nonEmpty => readAnew(batch)
      // Or the damage is in what the cache has of it, or came on the way from storage.
      case Failure(error) if meansOtherContent(error) => readAnew(batch)
      case outcome => Future.fromTry(outcome)
    }
  }

  /** The same from storage alone, whatever is known or was read of the entry. */
  def readAnew(batch: Long): Future[EntryFound] = readFrom(batch, fetchLength, None, None)

  private def meansOtherContent(error: Throwable): Boolean =
    StorageErrors.meansTooShort(error) || Causes.of(error).exists(_.isInstanceOf[DamagedLogException])

  private def readFrom(
      batch: Long,
      asked: Int,
      length: Option[Long],
      copies: Option[(DiskCache, UUID)]
  ): Future[EntryFound] = {
    val path = location.entry(batch)
    def fetch() = length match {
      case None => storage.read(path, ReadTail(path, asked))
      case Some(whole) =>
        val part = math.min(whole, asked.toLong).toInt
        storage.read(path, ReadRange(path, whole - part, part)).map(_.map(ObjectTail(_, whole)))
    }
    val fetched = copies match {
      case Some((cache, reader)) if asked == fetchLength =>
        cache.get(EntryPlace(location.root.toString, reader, batch))(fetch())
      case _ => fetch()
    }
    fetched.flatMap {
      case None => Future.successful(EntryFound.Absent)
      case Some(tail) => CommitEntry.inspect(path, tail) match {
          case EntryInspection.Plain => Future.successful(EntryFound.Plain)
          case EntryInspection.NeedsTail(needed) if needed > asked => readFrom(batch, needed, length, copies)
          case EntryInspection.NeedsTail(needed) =>
            Future.failed(LogErrors.damaged(path, tail.length, s"its index needs $needed bytes of it"))
          case EntryInspection.Whole(index, logStart) =>
            Future.successful(EntryFound.Logged(new LoadedEntry(path, batch, index, logStart, tail)))
        }
    }
  }
}

object EntryReader {

  private final val AtOnce = 8

  /** Runs `read` for each batch, eight at a time: reads in the background leave threads to others. Ends with the first failure. */
  def fewAtOnce[T](batches: Iterable[Long])(read: Long => Future[Option[T]])(implicit
      executor: ExecutionContext
  ): Future[Vector[T]] =
    batches.toVector.grouped(AtOnce).foldLeft(Future.successful(Vector.empty[T])) { (before, some) =>
      before.flatMap(found => Future.traverse(some)(read).map(found ++ _.flatten))
    }
}
