// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import scala.concurrent.{ExecutionContext, Future}
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.{LogErrors, LostObjectException}
import sparkdstl.log.format._
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.storage.StorageOperation.ListObjects

/**
 * Finds the newest batch to which a query can be rolled back after a read of its checkpoint has failed. It lists, and reads the
 * index of each commit entry; of changes and snapshots it checks that they exist. `dstl rollback` verifies the batch before it
 * deletes anything.
 */
final class WayBack(storage: QueryStorage) {
  import storage.location

  private final val FetchLength = 256 * 1024

  // Spark has a schema file for each column family of an operator.
  private val SchemaOfFamily = """(\d+)/_stateSchema/.+""".r
  private implicit val executor: ExecutionContext = storage.runtime.executor
  private val entries = new EntryReader(storage, FetchLength)

  /** The error with its way out; the error as it is if storage fails meanwhile. */
  def explain(lost: LostObjectException): Future[LostObjectException] =
    newest(lost.file).map(found => lost.withWayOut(LogErrors.wayOut(location.root, found))).recover {
      case NonFatal(_) =>
        lost
    }

  /** The newest batch that can be rebuilt without the file `lost`; None if there is none. */
  def newest(lost: Path): Future[Option[Long]] = for {
    commits <- storage.entries()
    begun <- storage.read(location.offsets, ListObjects(location.offsets))
    files <- storage.stateFiles()
    (data, _) <- storage.dataFiles()
    others = LogLayout.bytesIn(commits).filter { case (batch, _) => location.entry(batch) != lost }
    read <- readAll(others)
  } yield new RebuildableBatches(
    read,
    damaged = LogLayout.batchesIn(commits).toSet -- read.keySet,
    offsets = LogLayout.bytesIn(begun.filter(entry => entry.path != lost && entry.length > 0)).keySet,
    dataFiles = data.iterator.map(_.path).filter(_ != lost).map(LogLayout.nameOf).toSet,
    plain = files.filter(_ != lost).flatMap(location.plainSegment),
    withFamilies = files.map(location.belowState).collect { case SchemaOfFamily(operator) => operator }.toSet
  ).newest

  /** The indexes of the entries that can be read; None is an entry of stock Spark. */
  private def readAll(lengths: Map[Long, Long]): Future[Map[Long, Option[LogFileIndex]]] =
    EntryReader.fewAtOnce(lengths.keys) { batch =>
      entries.read(batch, lengths.get(batch)).map {
        case EntryFound.Absent => None
        case there => Some(batch -> there.logged.map(_.index))
      }.recover { case _: LostObjectException => None }
    }.map(_.toMap)
}

/**
 * Which batches can be rebuilt from the entries `read` and the plain files of a checkpoint, once all later entries are deleted.
 *
 * @param read    the indexes of entries by batch; None is an entry of stock Spark
 * @param damaged batches whose entry exists and cannot be read
 * @param offsets batches with an entry in `offsets`
 * @param dataFiles names of the existing data files
 * @param plain the changelogs and snapshots that are plain files
 * @param withFamilies operators whose stores have column families: their changelogs do not name these, so Spark does not load
 *                     them without a snapshot
 */
private[read] final class RebuildableBatches(
    read: Map[Long, Option[LogFileIndex]],
    damaged: Set[Long],
    offsets: Set[Long],
    dataFiles: Set[String],
    plain: Seq[SegmentKey],
    withFamilies: Set[String]
) {
  private val logged = read.collect { case (batch, Some(index)) => batch -> index }
  private val changed = logged.map { case (batch, index) => batch -> index.changedStores.toSet }
  private val plainOf = plain.groupBy(_.storeDirectory)
    .map { case (store, keys) => store -> keys.map(key => key.kind -> key.version).toSet }

  // The first batches whose entry has the snapshots of a store, by version.
  private val held: Map[String, Map[Long, Long]] = logged.valuesIterator.flatMap(_.snapshots).flatMap(_.held).toVector
    .filter(of => logged.contains(of.batch) && of.files.forall(dataFiles)).groupBy(_.key.storeDirectory)
    .map { case (store, all) =>
      store -> all.groupBy(_.key.version).map { case (version, of) => version -> of.map(_.batch).min }
    }

  // Entries whose changes can be replayed on those of the entry before.
  private val replayable: Set[Long] = logged.collect {
    case (batch, index)
        if follows(index, batch) && index.entries.filter(_.key.kind == SegmentKind.Changelog)
          .flatMap(_.parts).flatMap(_.file).forall(dataFiles) => batch
  }.toSet

  def newest: Option[Long] = read.keys.toVector.sorted.reverseIterator.find(isWhole)

  private def isWhole(batch: Long): Boolean = offsets(batch) && (batch == 0 || offsets(batch - 1)) &&
    storesAt(batch).forall(store => isRebuilt(store, batch))

  private def storesAt(batch: Long): Set[String] = {
    val last = changed.iterator.collect { case (of, stores) if of <= batch && stores.nonEmpty => of }.maxOption
    last.fold(plainOf.keySet)(changed)
  }

  private def isRebuilt(store: String, batch: Long): Boolean = {
    val inLog = held.getOrElse(store, Map.empty).collect { case (version, in) if in <= batch => version }
    val inFiles = plainOf.getOrElse(store, Set.empty).collect { case (SegmentKind.Snapshot, version) => version }
    val base = (inLog ++ inFiles).filter(_ <= batch + 1).maxOption.orElse(Option.unless(hasFamilies(store))(0L))
    base.exists(from => (from to batch).forall(hasChanges(store, _)))
  }

  private def hasFamilies(store: String): Boolean = withFamilies(store.takeWhile(_ != '/'))

  private def hasChanges(store: String, batch: Long): Boolean =
    if (changed.get(batch).exists(_.nonEmpty)) replayable(batch) && changed(batch)(store)
    else !damaged(batch) && plainOf.get(store).exists(_(SegmentKind.Changelog -> (batch + 1)))

  private def follows(index: LogFileIndex, batch: Long): Boolean = {
    val before = logged.get(batch - 1).flatMap(_.link).map(_.entry)
    val named = index.link.flatMap(_.previous)
    before.forall(id => named.forall(_ == id))
  }
}
