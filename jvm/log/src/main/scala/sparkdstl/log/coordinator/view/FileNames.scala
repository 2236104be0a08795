package sparkdstl.log.coordinator.view

import sparkdstl.log.format.LogLayout

/** What names a data file. */
private[coordinator] sealed trait Namer

private[coordinator] object Namer {

  /** The commit entry of a batch. */
  final case class Entry(batch: Long) extends Namer

  /** Snapshots that a task attempt has sealed for a batch which is not committed yet. */
  final case class Seal(batch: Long, attempt: Long) extends Namer
}

/**
 * Which data files are named, and by what. An unchanged SST file is named by one snapshot after another, so its data file can be
 * deleted only with the last of them. Immutable.
 *
 * A file without a name can be named for the first time by the executor that has uploaded it, unless it was released for
 * deletion meanwhile. Executors number their files; so the highest released number of each executor is enough to tell.
 */
private[coordinator] final class FileNames private (
    names: Map[Namer, Set[String]],
    namers: Map[String, Set[Namer]],
    releasedUpTo: Map[(String, String), Long]
) {

  def isNamed(file: String): Boolean = namers.contains(file)

  def isNamedByEntry(file: String): Boolean = namers.get(file).exists(_.exists(_.isInstanceOf[Namer.Entry]))

  /** The files that `by` names. */
  def of(by: Namer): Set[String] = names.getOrElse(by, Set.empty)

  /** `by` names these files, in addition to those that it has named before. */
  def name(by: Namer, files: Set[String]): FileNames =
    if (files.isEmpty) this
    else new FileNames(
      names + (by -> (of(by) ++ files)),
      files.foldLeft(namers)((all, file) => all + (file -> (all.getOrElse(file, Set.empty[Namer]) + by))),
      releasedUpTo
    )

  /** `by` names nothing any more. */
  def forget(by: Namer): FileNames =
    if (!names.contains(by)) this
    else new FileNames(
      names - by,
      of(by).foldLeft(namers) { (all, file) =>
        val others = all.getOrElse(file, Set.empty[Namer]) - by
        if (others.isEmpty) all - file else all + (file -> others)
      },
      releasedUpTo
    )

  /** All seals of batches up to `batch` name nothing any more. */
  def forgetSeals(batch: Long): FileNames =
    names.keysIterator.collect { case seal: Namer.Seal if seal.batch <= batch => seal }.foldLeft(this)(_.forget(_))

  /**
   * Those of the files that may not be on storage any more: they have no name, and were released, or are of another run.
   *
   * @param epoch of this run
   */
  def missing(files: Set[String], epoch: Long): Set[String] = files.filterNot { file =>
    isNamed(file) || LogLayout.parseDataFile(file).exists { name =>
      name.epoch == epoch && releasedUpTo.get((name.executor, name.instance)).forall(_ < name.sequence)
    }
  }

  /**
   * Releases those of the files that have no name: from now on [[missing]] reports them.
   *
   * @return the released files, to be deleted
   */
  def release(files: Set[String]): (FileNames, Set[String]) = {
    val unnamed = files.filterNot(isNamed)
    val released = unnamed.iterator.flatMap(LogLayout.parseDataFile).foldLeft(releasedUpTo) { (all, name) =>
      val executor = (name.executor, name.instance)
      all + (executor -> math.max(name.sequence, all.getOrElse(executor, 0L)))
    }
    (new FileNames(names, namers, released), unnamed)
  }
}

private[coordinator] object FileNames {
  val empty: FileNames = new FileNames(Map.empty, Map.empty, Map.empty)
}
