// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.error.LogErrors
import sparkdstl.log.format.{CommitEntry, EntryInspection}
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.storage.StorageOperation.ReadTail

/**
 * Reads commit entries from storage. Version v of a store is in the entry of batch v - 1 or in a plain file. A read fetches
 * `fetchLength` bytes of an entry's end, for the index and as many segments as fit. The disk cache comes with the reader's id.
 */
final class EntryReader(
    storage: QueryStorage,
    fetchLength: Int,
    diskCache: Option[(DiskCache, UUID)] = None
) {
  import storage.location
  private implicit val executor: ExecutionContext = storage.runtime.executor

  /** Fails with a [[sparkdstl.log.error.DstlException]] if storage does not answer in time or the entry is damaged. */
  def read(batch: Long): Future[EntryFound] = readFrom(batch, fetchLength)

  private def readFrom(batch: Long, asked: Int): Future[EntryFound] = {
    val path = location.entry(batch)
    def fetch() = storage.read(path, ReadTail(path, asked))
    val fetched = diskCache match {
      case Some((cache, reader)) if asked == fetchLength =>
        cache.get(EntryPlace(location.root.toString, reader, batch))(fetch())
      case _ => fetch()
    }
    fetched.flatMap {
      case None => Future.successful(EntryFound.Absent)
      case Some(tail) => CommitEntry.inspect(path, tail) match {
          case EntryInspection.Plain => Future.successful(EntryFound.Plain)
          case EntryInspection.NeedsTail(length) if length > asked => readFrom(batch, length)
          case EntryInspection.NeedsTail(length) =>
            Future.failed(LogErrors.damaged(path, tail.length, s"its index needs $length bytes of it"))
          case EntryInspection.Whole(index, logStart) =>
            Future.successful(EntryFound.Logged(new LoadedEntry(path, batch, index, logStart, tail)))
        }
    }
  }
}
