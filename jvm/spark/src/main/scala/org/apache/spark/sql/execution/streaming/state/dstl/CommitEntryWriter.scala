package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}

import sparkdstl.log.storage.LogStorage

/**
 * Creates a commit entry: the one write that decides whose batch it is. The entry names our run, so an entry that is there
 * already and says what ours would say is ours: an earlier attempt's reply was lost, or a hedge was faster.
 */
private[dstl] final class CommitEntryWriter(storage: LogStorage, writes: RetriedWrites) {

  /** @throws FencedException if another driver has committed the batch, naming that driver's run and host */
  def create(entry: Path, content: Array[Byte]): Unit =
    try writes.create(storage, entry, content, namesItsWriter = true)
    catch {
      case e: FileAlreadyExistsException =>
        val other = winner(entry)
        val fenced = DstlErrors.fenced(entry, other.map(_._1), other.map(_._2))
        fenced.initCause(e)
        throw fenced
    }

  private def winner(entry: Path): Option[(UUID, String)] =
    try CommittedBatches.note(entry.getParent, entry.getName.toLong, storage).map(note => note.run -> note.host)
    catch { case NonFatal(_) => None }
}
