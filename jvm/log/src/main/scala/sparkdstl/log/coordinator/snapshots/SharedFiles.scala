package sparkdstl.log.coordinator.snapshots

import scala.collection.mutable

import sparkdstl.log.format.LogLayout

/**
 * Who names which data file of snapshots: commit entries, and snapshots that wait for one. An unchanged file is named by one
 * snapshot after another, so a data file may go only with the last of them. Thread-safe.
 *
 * A file that nobody names may be named for the first time, by word of the executor that has uploaded it. Word of one that
 * was let go meanwhile is not to be believed. Executors count their files; so it is enough to know up to which of an
 * executor's files any was let go.
 *
 * @param epoch
 *   of this run: files of others are known from entries, or are not there
 */
private[coordinator] final class SharedFiles(epoch: Long) {
  import SharedFiles._

  // Guarded by this.
  private val namedBy = mutable.HashMap.empty[String, Set[Namer]]
  private val names = mutable.HashMap.empty[Namer, Set[String]]
  private val letGoUpTo = mutable.HashMap.empty[(String, String), Long]

  /** `by` needs these files, beside what it has named before. */
  def name(by: Namer, files: Iterable[String]): Unit = synchronized {
    val added = files.toSet
    if (added.nonEmpty) {
      names.updateWith(by)(before => Some(before.getOrElse(Set.empty) ++ added)): Unit
      added.foreach(file => namedBy.updateWith(file)(before => Some(before.getOrElse(Set.empty) + by)): Unit)
    }
  }

  /**
   * `by` needs these files, if all of them are there.
   *
   * @return
   *   those that may not be there any more; then `by` needs nothing
   */
  def nameIfThere(by: Namer, files: Set[String]): Set[String] = synchronized {
    val missing = files.filterNot(mayBeNamed)
    if (missing.isEmpty) name(by, files)
    missing
  }

  /**
   * Entries of other runs, beside these, that name some of these files as far as is known: another run may have deleted them
   * meanwhile.
   */
  def othersNaming(files: Set[String], beside: Set[Long]): Set[Long] = synchronized {
    files.iterator.flatMap(namedBy.get).flatten.collect {
      case Entry(batch) if !beside(batch) && !names.contains(Written(batch)) => batch
    }.toSet
  }

  /**
   * Whether this run has named the file: in an entry that it has written, or is writing, or in none yet. What entries of others
   * name storage tells; this may know of one that is gone.
   */
  def isNamedByThisRun(file: String): Boolean = synchronized(namedBy.get(file).exists(_.exists {
    case _: Offer | _: Written => true
    case _: Entry => false
  }))

  /**
   * These need nothing any more.
   *
   * @param others
   *   files that only they needed, beside those they have named
   * @return
   *   the files of both kinds that nobody else needs, to be deleted: nobody will be believed who names them
   */
  def letGo(by: Iterable[Namer], others: Iterable[String] = Nil): Set[String] = synchronized {
    val theirs = by.iterator.flatMap(forget).toSet ++ others
    val unneeded = theirs.filterNot(namedBy.contains)
    unneeded.foreach { file =>
      LogLayout.parseDataFile(file).filter(_.epoch == epoch).foreach { name =>
        letGoUpTo.updateWith((name.executor, name.instance)) { before =>
          Some(math.max(name.sequence, before.getOrElse(0L)))
        }: Unit
      }
    }
    unneeded
  }

  /** The namer is gone, and what it has named is left where it is. */
  def forget(by: Namer): Set[String] = synchronized {
    val theirs = names.remove(by).getOrElse(Set.empty[String])
    theirs.foreach(file => namedBy.updateWith(file)(_.map(_ - by).filter(_.nonEmpty)): Unit)
    theirs
  }

  private def mayBeNamed(file: String): Boolean = namedBy.contains(file) ||
    LogLayout.parseDataFile(file).exists { name =>
      name.epoch == epoch && letGoUpTo.get((name.executor, name.instance)).forall(_ < name.sequence)
    }
}

private[coordinator] object SharedFiles {

  /** What needs a file. */
  sealed trait Namer

  /** The commit entry of a batch, as it was read. */
  final case class Entry(batch: Long) extends Namer

  /** The commit entry of a batch, as this run has written it, or is about to. */
  final case class Written(batch: Long) extends Namer

  def ofEntry(batch: Long): Seq[Namer] = Seq(Entry(batch), Written(batch))

  /** A snapshot of this store that no entry holds yet. */
  final case class Offer(storeDirectory: String, version: Long) extends Namer
}
