package sparkdstl.log.coordinator

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.LogFileIndex
import sparkdstl.log.read.EntryFound

/**
 * The end of the chain of commit entries, as a run knows it: the newest one, on which the next is built. Thread-safe.
 *
 * @param last
 *   the newest batch that had an entry when the run began
 * @param found
 *   its entry
 */
private[coordinator] final class EntryChain(last: Option[Long], found: EntryFound) {
  import EntryChain._

  // Guarded by this.
  private var batch = last.getOrElse(-1L)
  // The id of the newest entry, if it has one; None while it is not known whether it has.
  private var id: Option[Option[UUID]] = Some(idOf(found))

  /** The newest batch that is known to have an entry; -1 if there is none. */
  def newest: Long = synchronized(batch)

  /**
   * The id of the entry that the one of `next` is to be built on; None if there is no such entry, or it has no id.
   *
   * @param read
   *   finds what is not known of an entry
   */
  def before(next: Long)(read: Long => Future[EntryFound])(implicit
      executor: ExecutionContext
  ): Future[Option[UUID]] = {
    val known = synchronized {
      if (batch == next - 1) id
      // Spark goes on from an entry that appeared after this run had looked.
      else if (batch < next - 1) None
      else Some(None)
    }
    known.map(Future.successful).getOrElse(read(next - 1).map(idOf))
  }

  /** The run has committed `of` with an entry of this index. */
  def committed(of: Long, index: LogFileIndex): Unit = synchronized {
    batch = of
    id = Some(index.link.map(_.entry))
  }

  /** Entries above `left` are gone. Says whether any were known. */
  def goBackTo(left: Long): Boolean = synchronized {
    val changes = left < batch
    if (changes) {
      batch = left
      id = None
    }
    changes
  }
}

private object EntryChain {
  private def idOf(found: EntryFound): Option[UUID] = found match {
    case EntryFound.Logged(entry) => entry.index.link.map(_.entry)
    case EntryFound.Plain | EntryFound.Absent => None
  }
}
