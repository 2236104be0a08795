// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import scala.collection.mutable

import sparkdstl.sim.machines.ObjectMap
import sparkdstl.sim.world.{SimConfig, Verdict}

/**
 * What [[VersionOracle]] checks: versions of each store from a lowest one on.
 *
 * @param from       by store
 * @param oldest     retained version, to which a user may roll back
 * @param isDamaged  whether objects are damaged, so that some versions may not be rebuilt
 * @param isReplaced whether an entry was replaced
 */
private[model] final case class ToCheck(from: Map[String, Long], oldest: Long, isDamaged: Boolean, isReplaced: Boolean)

/**
 * Rebuilds states from storage alone, and compares them with those that were committed.
 *
 * @param records the committed batches
 * @param newest  of them, or -1
 */
private[model] final class VersionOracle(
    config: SimConfig,
    stores: Vector[String],
    records: collection.Map[Long, Committed],
    newest: => Long,
    reader: StorageReader,
    objects: ObjectMap,
    verdict: Verdict
) {
  // The newest entries may lack snapshots that versions up to this one need, except for the newest version.
  private var listsLackUpTo = 0L
  // Stores that had two snapshots.
  private val withSpare = mutable.Set.empty[String]
  // The newest snapshots after a rollback or a repair: the log below them may have been released.
  private val spareFrom = mutable.Map.empty[String, Long].withDefaultValue(0L)

  /** A user has deleted batches. */
  def rolledBack(): Unit = {
    withSpare.clear()
    stores.foreach { store =>
      spareFrom(store) = reader.listedFor(store, newest, objects).lastOption.fold(0L)(_.state.version)
    }
  }

  /** A damaged object was restored. A run that could not read an entry has not listed the snapshots in it. */
  def restored(): Unit = {
    withSpare.clear()
    stores.foreach(store => spareFrom(store) = math.max(spareFrom(store), newest + 1))
    listsLackUpTo = newest + 1
  }

  /**
   * Checks that every version can be rebuilt and is the committed one, and that the oldest can be rebuilt even after a rollback
   * to it, without the entries above it.
   */
  def check(of: ToCheck, when: => String): Unit = {
    stores.foreach { store =>
      val standing = rebuilder(store, of)
      var version = newest + 1
      while (version >= of.from(store) && version > 0) {
        records.get(version - 1).foreach { record =>
          problemOf(version, record, standing, of).foreach { problem =>
            verdict.violate(s"version $version of $store, committed by ${record.intent.who}, $problem, $when")
          }
        }
        version -= 1
      }
      if (config.logsSnapshots && !of.isReplaced && !of.isDamaged) checkSpare(store, of, when)
    }
    import of.oldest
    if (oldest > 0 && oldest <= newest) records.get(oldest - 1).foreach { record =>
      stores.foreach { store =>
        problemOf(oldest, record, rebuilder(store, of, upTo = oldest - 1), of).foreach { problem =>
          verdict.violate(s"version $oldest of $store $problem, $when, once entries above ${oldest - 1} are deleted")
        }
      }
    }
  }

  /** Checks that the newest version can be rebuilt without the newest snapshot, which may be damaged. */
  private def checkSpare(store: String, of: ToCheck, when: => String): Unit = {
    val states = reader.listedFor(store, newest, objects).map(_.state)
    states.map(state => state.version -> state).toMap.toVector.sortBy(_._1) match {
      case _ :+ ((_, newestKey)) if newestKey.version > newest + 1 => ()
      case _ :+ ((spare, _)) :+ _ if spare < spareFrom(store) => ()
      case _ :+ _ :+ ((version, key)) =>
        withSpare += store
        val isPartOfCommit = records.get(version - 1).forall(_.intent.wins(store).change.needsSnapshot)
        if (!isPartOfCommit) {
          val others = rebuilder(store, of, without = Some(key))
          records.get(newest).flatMap(problemOf(newest + 1, _, others, of)).foreach { problem =>
            verdict.violate(
              s"version ${newest + 1} of $store without its newest snapshot, of $version, $problem, $when"
            )
          }
        }
      // With plain snapshots Spark's own maintenance decides, and may keep a single one.
      case standing if withSpare(store) && plainSnapshots(store).isEmpty && standing.size < 2 =>
        verdict.violate(s"of the last two snapshots of $store only ${standing.map(_._1).mkString} is left, $when")
      case _ => ()
    }
  }

  private def plainSnapshots(store: String): Iterable[Long] = records.collect {
    case (batch, record) if objects.contains(Names.snapshot(store, batch + 1, record.intent.wins(store).id)) =>
      batch + 1
  }

  private def rebuilder(
      store: String,
      of: ToCheck,
      upTo: Long = newest,
      without: Option[StateName] = None
  ): StateRebuilder = new StateRebuilder(store, upTo, without, of.isDamaged, reader, objects)

  private def problemOf(version: Long, record: Committed, rebuilder: StateRebuilder, of: ToCheck): Option[String] = {
    val wanted = record.states(rebuilder.store)
    rebuilder.rebuild(version, record.intent.wins(rebuilder.store).id) match {
      case Left(_) if of.isDamaged || version <= math.min(listsLackUpTo, newest) => None
      case Left(problem) => Some(s"cannot be rebuilt: $problem")
      case Right(found) if found != wanted && !record.tainted => Some(s"is $found and must be $wanted")
      case _ => None
    }
  }
}
