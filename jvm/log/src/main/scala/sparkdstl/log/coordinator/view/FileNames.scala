// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

import sparkdstl.log.format.LogLayout

/** A reference to data files, which keeps them on storage. */
private[coordinator] sealed trait Namer

private[coordinator] object Namer {
  final case class Entry(batch: Long) extends Namer

  /** The snapshots that a task attempt has sealed for an uncommitted batch. */
  final case class Seal(batch: Long, attempt: Long) extends Namer
}

/**
 * The data files that commit entries and seals name. Successive snapshots name the data file of an unchanged SST file, so the
 * file can be deleted only with the last of them. Immutable.
 *
 * An executor may name a file that it has uploaded, unless the file was released for deletion. Executors number their files, so
 * the highest released number of each executor identifies the released files.
 */
private[coordinator] final class FileNames private (
    names: Map[Namer, Set[String]],
    namers: Map[String, Set[Namer]],
    releasedUpTo: Map[(String, String), Long]
) {

  def isNamed(file: String): Boolean = namers.contains(file)
  def isNamedByEntry(file: String): Boolean = namers.get(file).exists(_.exists(_.isInstanceOf[Namer.Entry]))
  def of(by: Namer): Set[String] = names.getOrElse(by, Set.empty)

  def name(by: Namer, files: Set[String]): FileNames =
    if (files.isEmpty) this
    else new FileNames(
      names + (by -> (of(by) ++ files)),
      files.foldLeft(namers)((all, file) => all + (file -> (all.getOrElse(file, Set.empty[Namer]) + by))),
      releasedUpTo
    )

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

  def forgetSeals(batch: Long): FileNames =
    names.keysIterator.collect { case seal: Namer.Seal if seal.batch <= batch => seal }.foldLeft(this)(_.forget(_))

  /** The files that may have been deleted: unnamed files that were released, or uploaded by a run of another epoch. */
  def missing(files: Set[String], epoch: Long): Set[String] = files.filterNot { file =>
    isNamed(file) || LogLayout.parseDataFile(file).exists { name =>
      name.epoch == epoch && releasedUpTo.get((name.executor, name.instance)).forall(_ < name.sequence)
    }
  }

  /** Releases the unnamed files for deletion, and returns them; [[missing]] reports them from now on. */
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
