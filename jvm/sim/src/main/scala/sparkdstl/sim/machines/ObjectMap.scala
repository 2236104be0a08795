// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.machines

import scala.collection.mutable

import sparkdstl.sim.model.Names
import sparkdstl.sim.world.Verdict

/**
 * An object on the one storage that all processes share.
 *
 * @param writer the process that requested the write
 */
final case class StoredBytes(bytes: Array[Byte], atNanos: Long, writer: SimProcess, serial: Long)

/** One change of storage. `before` and `after` are the objects at the path before and after it. */
final case class StorageChange(
    atNanos: Long,
    writer: SimProcess,
    path: String,
    before: Option[StoredBytes],
    after: Option[StoredBytes]
)

/** All objects and the history of their changes. The watcher is called after each change. */
final class ObjectMap(scheduler: SimScheduler, verdict: => Verdict) {
  private val objects = new java.util.TreeMap[String, StoredBytes]
  // The same objects for look-ups by name, which are the most frequent.
  private val byName = new java.util.HashMap[String, StoredBytes]
  private val changes = mutable.ArrayBuffer.empty[StorageChange]
  private var watcher: StorageChange => Unit = (_: StorageChange) => ()
  private var serials = 0L
  private var newestEpoch = 0L
  // The number of deletions of each path while no object existed.
  private val inVain = mutable.TreeMap.empty[String, Int]
  // The paths that are read during [[seenBy]].
  private var seen = Option.empty[mutable.HashSet[String]]

  def watch(each: StorageChange => Unit): Unit = watcher = each

  def get(path: String): Option[StoredBytes] = {
    seen.foreach(_ += path)
    Option(byName.get(path))
  }

  def contains(path: String): Boolean = get(path).nonEmpty

  /** The paths that [[get]] and [[contains]] read while `action` runs. */
  def seenBy(action: => Unit): collection.Set[String] = {
    val looked = mutable.HashSet.empty[String]
    seen = Some(looked)
    try action
    finally seen = None
    looked
  }

  /** The number of changes so far. */
  def revision: Int = changes.size

  def publish(path: String, bytes: Array[Byte], writer: SimProcess): Unit = {
    serials += 1
    val stored = StoredBytes(bytes, scheduler.nowNanos, writer, serials)
    byName.put(path, stored): Unit
    val before = Option(objects.put(path, stored))
    if (path.startsWith(Names.Claims)) newestEpoch = math.max(newestEpoch, Names.batchOf(path).getOrElse(0L))
    tell(StorageChange(scheduler.nowNanos, writer, path, before, Some(stored)))
  }

  def delete(path: String, writer: SimProcess): Unit = Option(byName.remove(path)) match {
    case None => inVain(path) = inVain.getOrElse(path, 0) + 1
    case Some(before) =>
      objects.remove(path): Unit
      tell(StorageChange(scheduler.nowNanos, writer, path, Some(before), None))
  }

  def forgetVainDeletions(): Unit = inVain.clear()

  /** The number of deletions of each path while no object existed. */
  def vainDeletions: collection.Map[String, Int] = inVain

  /** The highest claimed epoch, even if its claim is deleted. */
  def newestClaim: Long = newestEpoch

  /** Objects below `directory` in order of their names; only those directly in it unless `deep`. */
  def below(directory: String, deep: Boolean): Vector[(String, StoredBytes)] = {
    val prefix = directory + "/"
    val found = Vector.newBuilder[(String, StoredBytes)]
    val entries = objects.tailMap(prefix).entrySet().iterator()
    var inside = true
    while (inside && entries.hasNext) {
      val entry = entries.next()
      inside = entry.getKey.startsWith(prefix)
      if (inside && (deep || entry.getKey.indexOf('/', prefix.length) < 0)) found += entry.getKey -> entry.getValue
    }
    found.result()
  }

  /** The history of a path as text. */
  def story(path: String): String = changes.iterator
    .filter(_.path == path)
    .map { c =>
      val what = if (c.after.isEmpty) "deleted" else if (c.before.isEmpty) "written" else "replaced"
      f"$what by ${c.writer.name} at ${c.atNanos / 1e6}%.3f"
    }
    .mkString(s"$path: ", ", ", "")

  /** The time of the last deletion if no object exists now. */
  def deletedAt(path: String): Option[Long] =
    changes.reverseIterator.find(_.path == path).filter(_.after.isEmpty).map(_.atNanos)

  def isDeletedSince(path: String, nanos: Long): Boolean =
    changes.exists(c => c.path == path && c.after.isEmpty && c.atNanos >= nanos)

  private def tell(change: StorageChange): Unit = {
    changes += change
    verdict.mix(change.path.hashCode.toLong)
    verdict.note {
      val what = if (change.after.isEmpty) "deletes" else if (change.before.isEmpty) "writes" else "REPLACES"
      s"  ${change.writer.name} $what ${change.path}${change.after.fold("")(o => s" (${o.bytes.length} bytes)")}"
    }
    watcher(change)
  }
}

object ObjectMap {

  /** Whether a path is that of an unpublished temporary file. */
  def isUnpublished(path: String): Boolean = path.endsWith(".tmp")
}
