// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.play

import sparkdstl.sim.machines.{ObjectMap, StoredBytes}
import sparkdstl.sim.model.Names
import sparkdstl.sim.world.{Chance, FaultKind, World}

/**
 * Damages objects on storage and restores them after a while. Meanwhile versions that need them may be unreadable, but
 * are never read as another state.
 */
private[play] final class Damage(world: World, chance: Chance) {
  import world.{model, objects, reach, verdict}

  private val shell = world.newProcess("damage")
  private val MaxTimes = 4
  private var times = 0

  // The objects before and after the damage.
  private var damaged = Map.empty[String, (StoredBytes, Option[StoredBytes])]

  def entry(): Unit =
    pick(FaultKind.EntryDamaged, objects.below(Names.Commits, deep = false).filter(of => isLogged(of._2)))

  def dataFile(): Unit = pick(FaultKind.DataFileDamaged, objects.below(Names.DataFiles, deep = true))

  /** Deletes a data file of a snapshot. */
  def snapshotFile(): Unit = {
    val files = model.snapshotFiles
    if (files.nonEmpty && mayDamage) damage(FaultKind.SnapshotLost, chance.pick(files))(_ => None)
  }

  private def mayDamage: Boolean = times < MaxTimes

  def restoreAll(): Unit = damaged.keys.toVector.sorted.foreach(restore)

  private def isLogged(entry: StoredBytes): Boolean = entry.bytes.length > Damage.LongestStockEntry

  private def pick(kind: FaultKind, among: Vector[(String, StoredBytes)]): Unit = {
    val whole = among.map(_._1).filterNot(path => ObjectMap.isUnpublished(path) || damaged.contains(path))
    if (whole.nonEmpty && mayDamage) damage(kind, chance.pick(whole)) { bytes =>
      val half = bytes.length / 2
      if (chance.happens(0.2)) Some(bytes.take(chance.between(half, bytes.length - 1)))
      else {
        val at = chance.between(half, bytes.length - 1)
        Some(bytes.updated(at, (bytes(at) ^ 1 << chance.below(8)).toByte))
      }
    }
  }

  private def damage(kind: FaultKind, path: String)(change: Array[Byte] => Option[Array[Byte]]): Unit = {
    val before = objects.get(path).get
    times += 1
    reach.met(kind)
    verdict.note(s"$path is damaged ($kind)")
    model.damages(path) {
      change(before.bytes).fold(objects.delete(path, shell))(objects.publish(path, _, shell))
    }
    damaged += path -> (before -> objects.get(path))
    world.after(chance.millis(20000))(restore(path))
  }

  /** Restores an object unless it has changed again. A later run deletes it if it is not needed any more. */
  private def restore(path: String): Unit = damaged.get(path).foreach { case (before, now) =>
    damaged -= path
    val isSame = objects.get(path).map(_.serial) == now.map(_.serial)
    model.restores(path)(if (isSame) objects.publish(path, before.bytes, shell))
  }
}

private object Damage {

  /** Entries of stock Spark are shorter, and the second half of a longer entry is the log. */
  private val LongestStockEntry = 2048
}
