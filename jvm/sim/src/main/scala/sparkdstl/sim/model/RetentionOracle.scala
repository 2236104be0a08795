// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import java.nio.charset.StandardCharsets.UTF_8

import sparkdstl.sim.machines.ObjectMap
import sparkdstl.sim.world.{Reach, SimConfig}

/**
 * What storage may hold once a query has committed some batches without faults. Objects that are not needed when this oracle is
 * created must be gone when [[problems]] is called.
 *
 * @param isContended whether attempts may lose, which gives up snapshots under way
 * @param lostMessages
 *   whether answers to executors were lost: an executor may not know which uploads are named, and the next run deletes the others
 */
final class RetentionOracle(
    model: ReferenceModel,
    objects: ObjectMap,
    reader: StorageReader,
    config: SimConfig,
    reach: Reach,
    isContended: Boolean,
    lostMessages: Boolean
) {
  import RetentionOracle._

  // The last rounds may delete the claims of many runs.
  private val fencedBefore = standingClaims.flatMap(_.first).toSet
  private val mayGoBelow = math.min(model.retainedFromBatch, neededFrom)

  /** Needless objects on storage, and missing snapshots. */
  def problems: Vector[String] =
    (if (config.storage.createsExclusively) entries ++ claims ++ orphans else Vector.empty) ++
      (if (config.logsSnapshots && !isContended && hasRoom) snapshots else Vector.empty) ++ list ++ listedInVain

  /** Seals may fill a small inline budget and leave no room for carried snapshots. */
  private def hasRoom = config.constants.inlineBudget >= LeastInlineBudget

  /**
   * The lowest batch whose entry a store needs: that of the newest snapshot held by the oldest retained entry or one before it,
   * and never above the second newest snapshot.
   */
  private def neededFrom: Long = model.stores.map { store =>
    val listed = reader.listedFor(store, model.newest, objects)
    val base = listed.filter(_.batch <= model.retainedFromBatch).lastOption
    val lowest =
      if (listed.size < 2) 0L
      else base.fold(0L)(of => math.min(of.state.version, listed(listed.size - 2).state.version))
    math.max(lowest, model.releasedBelow(store))
  }.min - 1

  private def entries: Vector[String] = {
    val fenced = fencedBefore ++ standingClaims.flatMap(_.first)
    val left = objects.below(Names.Commits, deep = false).flatMap(of => Names.batchOf(of._1)).filter(_ < mayGoBelow)
    if (left.exists(fenced)) reach.met("fence-outlives-retention")
    left.filterNot(fenced).map(batch => s"${objects.story(Names.commit(batch))}; needed from $mayGoBelow on")
  }

  private def snapshots: Vector[String] = model.stores.flatMap { store =>
    val versions = reader.listedFor(store, model.newest, objects).map(_.state.version)
    val oldest = model.newest + 1 - config.versionsPerSnapshot
    if (versions.size < 2)
      Some(s"$store has only the snapshots ${versions.mkString(", ")} at version ${model.newest + 1}")
    else if (versions.last < oldest)
      Some(s"the newest snapshot of $store at version ${model.newest + 1} is of version ${versions.last}")
    else None
  }

  /** A run does not list snapshots of entries that it has deleted. */
  private def listedInVain: Option[String] = for {
    entry <- objects.get(Names.commit(model.newest))
    gone <- reader.listRefersTo(model.newest, objects).find { batch =>
      objects.deletedAt(Names.commit(batch)).exists(_ < entry.atNanos - DeletionNanos)
    }
  } yield s"the newest entry lists what the entry of batch $gone held, which was deleted long before"

  /** One entry in so many lists all snapshots. */
  private def list: Option[String] = {
    val every = config.constants.limits.listEvery
    reader.listContinued(model.newest, objects).filter(_ >= every)
      .map(span => s"the newest entry continues a list from $span batches before, and one in $every is complete")
  }

  private def standingClaims: Vector[StandingClaim] =
    objects.below(Names.Claims, deep = false).flatMap { case (path, stored) =>
      Names.batchOf(path).map { epoch =>
        new String(stored.bytes, UTF_8).trim.split(' ') match {
          case Array("claim", _, _, first, follows) => StandingClaim(epoch, first.toLongOption, follows.toLongOption)
          case _ => StandingClaim(epoch, None, None)
        }
      }
    }

  /** A claim is deleted once its run and the run before it have ended, or once a hundred claims are newer. */
  private def claims: Vector[String] = {
    val standing = standingClaims
    val epochs = standing.map(_.epoch).toSet
    val newest = epochs.max
    val names = objects.below(Names.Claims, deep = false).map(of => of._1.drop(Names.Claims.length + 1))
    val ended = names.filter(_.endsWith(".ended")).map(_.stripSuffix(".ended").toLong).filter(_ != newest).toSet
    def mayBePaused(epoch: Long) = epoch == -1 || epochs(epoch) && !ended(epoch)
    val needless =
      standing.filter(of => ended(of.epoch) && !of.follows.exists(mayBePaused)).map(of => s"claim ${of.epoch}")
    val marks = ended.toVector.filterNot(epochs).map(epoch => s"mark $epoch.ended")
    val trials = names.filter(name => name.endsWith(".trial") && name.takeWhile(_ != '-').toLong < newest)
    val tooMany =
      if (epochs.size > config.constants.limits.fencingRuns + 1) Vector(s"${epochs.size} claims") else Vector.empty
    // The newest run has ended regularly.
    val unmarked =
      if (names.contains(s"$newest.ended")) Vector.empty else Vector(s"claim $newest without a mark of its end")
    if (standing.exists(of => of.epoch != newest && !ended(of.epoch))) reach.met("claim-of-a-run-that-was-killed-stays")
    // A claim that follows one deleted for its age is deleted one run later.
    (if (objects.newestClaim <= config.constants.limits.fencingRuns) needless else Vector.empty) ++ marks ++ trials ++
      tooMany ++ unmarked
  }

  private def orphans: Vector[String] = if (lostMessages) Vector.empty
  else {
    val all = objects.below(Names.Root, deep = true)
    val named = all.collect {
      case (path, entry) if Names.isEntry(path) => Names.batchOf(path).fold(Set.empty[String])(reader.namedBy(_, entry))
    }.flatten.toSet
    all.collect { case (path, _) if Names.isDataFile(path) && !named(path) => objects.story(path) }
  }
}

private object RetentionOracle {
  private val LeastInlineBudget = 2000L

  /** The time within which a deletion is answered. */
  private val DeletionNanos = 20000000000L

  final case class StandingClaim(epoch: Long, first: Option[Long], follows: Option[Long])
}
