// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import scala.collection.immutable.TreeMap
import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors
import sparkdstl.log.format.{Checksums, SparkEntry}

/**
 * The files in which Spark plans a batch: entries of its sources, and the entry in `offsets`, which names them. Their writes may
 * be under way while the tasks of the batch run: no seal of the batch is accepted, and no commit entry is created, before they
 * are durable. A failed write fails its batch, which this run then never commits. Thread-safe; the query's thread adds files.
 *
 * @param committed the newest batch that is committed at the start, and the checksum of its offsets, if its entry has one
 * @param isAtWork whether the run has not ended: after its end, no write begins
 */
final class BatchPlans private[coordinator] (
    committed: Option[(Long, Int)],
    isAtWork: () => Boolean,
    ended: () => Throwable
)(implicit executor: ExecutionContext) {
  import BatchPlans.Noted

  // Guarded by this. The content of files whose writes are under way.
  private val underWay = mutable.LinkedHashMap.empty[Path, Array[Byte]]
  private var written = Future.unit
  private var newest = -1L
  // The checksums of the newest entries in `offsets` that were read or written, by batch.
  private var checksums = TreeMap.from(committed)

  /** Writes the entry of a source. */
  def source(entry: Path, content: Array[Byte])(write: => Future[Unit]): Future[Unit] =
    add(entry, content, write)(Future.unit)

  /** Writes the entry of `batch` in `offsets`, after the entries of sources are durable: a restart would look for them. */
  def offsets(batch: Long, entry: Path, content: Array[Byte])(write: => Future[Unit]): Future[Unit] = {
    synchronized {
      newest = batch
      note(batch, Checksums.of(content))
    }
    add(entry, content, write)(whenWritten)
  }

  /**
   * Notes the content of an entry in `offsets` that exists. Fails with DSTL_DAMAGED_LOG if Spark could not read it, or if the
   * batch was committed with another one: its state was computed from other input than the entry shows.
   */
  def found(batch: Long, entry: Path, content: Array[Byte]): Unit = {
    // Of a lock, Spark's error quotes the line, which names the command.
    if (!SparkEntry.hasLines(content) && !SparkEntry.isLock(content))
      throw LogErrors.damaged(
        entry,
        content.length.toLong,
        "it ends before Spark's second line: it was emptied or cut off"
      )
    val checksum = Checksums.of(content)
    val known = synchronized {
      if (!checksums.contains(batch)) note(batch, checksum)
      checksums.get(batch)
    }
    if (known.exists(_ != checksum))
      throw LogErrors.damaged(entry, 0, s"it is not what batch $batch was computed from")
  }

  /** The checksum of the batch's entry in `offsets`, if this run has read or written it. */
  def checksum(batch: Long): Option[Int] = synchronized(checksums.get(batch))

  /** Completes when all files are written that plan `batch`, or were added before its end. */
  def durable(batch: Long): Future[Unit] = synchronized(if (batch == newest) written else Future.unit)

  /** Completes when all added files are written; fails if a write of this run has failed. */
  def whenWritten: Future[Unit] = synchronized(written)

  /** The content of a file whose write is under way. */
  def content(file: Path): Option[Array[Byte]] = synchronized(underWay.get(file))

  /** The files in a directory whose writes are under way, with their lengths. */
  def in(directory: Path): Vector[(Path, Long)] = synchronized {
    underWay.iterator.collect { case (file, of) if file.getParent == directory => file -> of.length.toLong }.toVector
  }

  /** Lock held. */
  private def note(batch: Long, checksum: Int): Unit = checksums = checksums.updated(batch, checksum).takeRight(Noted)

  private def add(file: Path, content: Array[Byte], write: => Future[Unit])(after: Future[Unit]): Future[Unit] = {
    synchronized(underWay.put(file, content)): Unit
    val done = after.flatMap(_ => if (isAtWork()) write else Future.failed(ended()))
    val all = synchronized {
      written = written.zip(done).map(_ => ())
      written
    }
    done.onComplete(_ => synchronized(underWay.remove(file)): Unit)
    // A caller that waits for this file waits for those before it as well.
    all
  }
}

private object BatchPlans {

  /** A restart reads the newest two entries in `offsets`. */
  private val Noted = 3
}
