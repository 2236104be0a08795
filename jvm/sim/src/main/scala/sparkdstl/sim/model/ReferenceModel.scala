// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import java.util.UUID

import scala.collection.mutable

import sparkdstl.sim.machines.{ObjectMap, SimProcess, SimScheduler, StorageChange, StoredBytes}
import sparkdstl.sim.world.{Reach, SimConfig, Verdict}

/**
 * The reference model of a query's state. It sees Spark's side of the world and the objects on storage but nothing of the log's
 * code, and rebuilds states from storage alone after each change.
 */
final class ReferenceModel(
    config: SimConfig,
    objects: ObjectMap,
    reader: StorageReader,
    scheduler: SimScheduler,
    verdict: Verdict,
    reach: Reach
) {
  private val intents = mutable.LongMap.empty[Intent]
  // The errors of failed commits by the number of the intent.
  private val refusals = mutable.LongMap.empty[String]
  private val records = mutable.TreeMap.empty[Long, Committed]
  private val everCommitted = mutable.Map.empty[(String, Long), Set[Lineage]]
  private val released = mutable.Map.empty[String, Long].withDefaultValue(0L)
  private var purgedBelow = 0L
  private val alsoPurged = mutable.Set.empty[Long]
  private var userActedAt = -1L
  private var userActs = false
  // The last batch whose entry a run replaced, where storage does not create exclusively.
  private var replaced = Option.empty[Long]
  private val late = new LateEntries(objects, reader)
  private val epochs = new EpochOracle(config, verdict, reach)
  private val leftovers = new LeftoverOracle(config, reader, verdict)
  private val purgers = mutable.Set.empty[SimProcess]
  // Objects that are damaged until they are restored.
  private val damaged = mutable.Set.empty[String]
  private var isDamaging = false
  // The start time of each run.
  private val runs = mutable.Map.empty[UUID, Long]
  // Processes in which a tool deletes entries, with the start time of the tool.
  private val tools = mutable.Map.empty[SimProcess, Long]
  // Runs that began while a tool deleted entries: they may have listed one of these, as with stock Spark.
  private val besideTools = mutable.Set.empty[String]
  private var checked = Option.empty[Checked]
  // A batch from which on a reader reads states.
  private var pinned = Option.empty[Long]

  val stores: Vector[String] = for {
    partition <- (0 until config.partitions).toVector
    store <- 0 until config.storesPerTask
  } yield StoreNames.directory(partition, store, config.storesPerTask)

  private val versions = new VersionOracle(config, stores, records, newest, reader, objects, verdict)

  /** The newest committed batch, or -1. */
  def newest: Long = records.lastOption.fold(-1L)(_._1)

  def state(store: String, version: Long): Option[Lineage] =
    if (version == 0) Some(Lineage.Empty) else records.get(version - 1).map(_.states(store))

  def committed(batch: Long): Option[Committed] = records.get(batch)

  def retainedFrom(store: String): Long =
    Vector(purgedBelow + 1, released(store), newest + 2 - config.batchesToRetain, 0L).max

  /** The batch below which Spark has requested the deletion of all entries. */
  def retainedFromBatch: Long = purgedBelow

  /** The lowest version of the store that Spark's maintenance of plain snapshots needs. */
  def releasedBelow(store: String): Long = released(store)

  /** Whether Spark retains the state to continue after this batch. */
  def canRollBackTo(batch: Long): Boolean = batch >= purgedBelow && records.contains(batch) && tools.isEmpty &&
    stores.forall(batch + 1 >= retainedFrom(_))

  /**
   * The world has no verdict: a write from before a rollback took effect after it, and
   * Spark's files are inconsistent.
   */
  var undecidable: Boolean = false

  private def undecided(why: String): Unit = {
    verdict.note(why)
    undecidable = true
  }

  def intend(who: String, batch: Long, wins: Map[String, Win]): Intent = {
    val intent = Intent(intents.size.toLong + 1, who, batch, wins, scheduler.nowNanos)
    intents.put(intent.number, intent): Unit
    verdict.note(
      s"$who is about to commit batch $batch: ${wins.map { case (s, w) => s"$s ${w.change.tag}" }.mkString(", ")}"
    )
    intent
  }

  /** The commit of the batch has succeeded for Spark. */
  def acknowledged(intent: Intent): Unit = {
    verdict.note(s"${intent.who} has committed batch ${intent.batch}")
    val isCommitted = records.get(intent.batch).exists(_.intent eq intent)
    if (config.storage.createsExclusively && !isCommitted && intent.madeAtNanos > userActedAt)
      verdict.violate(
        s"${intent.who} has committed batch ${intent.batch} by its answer, whose entry is " +
          records.get(intent.batch).fold("not recorded")(r => s"by ${r.intent.who}") + "; " +
          objects.story(Names.commit(intent.batch))
      )
  }

  /** The commit of the batch has failed for Spark. The entry may exist if it is damaged, because its writer is then unknown. */
  def refused(intent: Intent, error: Throwable): Unit = if (!damaged(Names.commit(intent.batch))) {
    refusals(intent.number) = error.toString
    if (records.get(intent.batch).exists(_.intent eq intent)) refuseLate(intent)
  }

  private def refuseLate(intent: Intent): Unit = refusals.get(intent.number).foreach { error =>
    if (config.storage.createsExclusively && intent.madeAtNanos > userActedAt)
      verdict.violate(
        s"${intent.who} has not committed batch ${intent.batch} by its answer, although its entry exists: $error"
      )
  }

  def runBegins(who: String, run: UUID): Unit = {
    runs(run) = scheduler.nowNanos
    if (isToolAtWork) besideTools += who
  }

  /**
   * A task has loaded the state that it builds on. A run from before a user's deletion may load a partly deleted state, but commits
   * nothing; so may a run during a tool's deletions.
   */
  def loaded(who: String, run: UUID, store: String, version: Long, found: Lineage): Unit =
    if (version == 0) { if (found != Lineage.Empty) verdict.violate(s"$who found $found at version 0 of $store") }
    else if (
      replaced.isEmpty && !isToolAtWork && runs(run) > userActedAt &&
      !everCommitted.get((store, version)).exists(_(found))
    )
      verdict.violate(
        s"$who loaded version $version of $store as $found, which was never committed; committed: " +
          state(store, version).fold("nothing")(_.toString)
      )

  /** Spark has requested the deletion of entries below this batch. */
  def purged(threshold: Long): Unit = {
    purgedBelow = math.max(purgedBelow, threshold)
    while (alsoPurged(purgedBelow)) purgedBelow += 1
  }

  /** A tool has requested the deletion of an entry that is no longer the newest: it is deleted with those below. */
  def purgedAlone(batch: Long): Unit = {
    alsoPurged += batch
    purged(purgedBelow)
  }

  def releasedBelow(store: String, version: Long): Unit = released(store) = math.max(released(store), version)

  /** A reader has pinned a batch that Spark retains: its state and later ones stay until the pin ends, or a user deletes some. */
  def pins(batch: Long): Unit = {
    pinned = Some(batch)
    checkAll(s"after batch $batch was pinned")
  }

  def unpins(): Unit = pinned = None

  /** A user deletes files in `act` and keeps these batches. */
  def userActs(keepBatches: Long => Boolean)(act: => Unit): Unit = {
    userActs = true
    unpins()
    userActedAt = scheduler.nowNanos
    records.keys.filterNot(keepBatches).toVector.foreach(records.remove(_): Unit)
    act
    versions.rolledBack()
    userActs = false
    checkAll("after a user's deletion")
  }

  /**
   * A tool begins to delete entries by name in this process. The newest entries are not checked until it has ended. Its requests
   * may take effect later, on other entries.
   */
  def toolBegins(process: SimProcess): Unit = {
    purgers += process
    unpins()
    tools(process) = scheduler.nowNanos
  }

  /** A tool has ended: the remaining entries are the history. `act` receives the newest batch. */
  def toolEnds(process: SimProcess, isKnown: Boolean)(act: Long => Unit): Unit =
    tools.remove(process).foreach { since =>
      val left = newestOnStorage
      // An entry with an earlier request appears again above the deleted ones.
      val isAlone = left >= stores.map(retainedFrom).max && !objects.contains(Names.commit(left - 1))
      val isLate = isAlone && objects.get(Names.commit(left)).exists(_.atNanos > since) ||
        objects.isDeletedSince(Names.commit(left), since)
      if (!isKnown || isLate) undecidable = true else userActs(_ <= left)(act(left))
    }

  def isToolAtWork: Boolean = tools.nonEmpty

  def toolCrashed(process: SimProcess): Unit = if (tools.remove(process).nonEmpty) undecidable = true

  /** The newest batch that has an entry on storage. */
  def newestOnStorage: Long =
    objects.below(Names.Commits, deep = false).flatMap(of => Names.batchOf(of._1)).maxOption.getOrElse(-1L)

  /** Whether all entries from this batch on have a log. */
  def areLogged(from: Long): Boolean = objects.below(Names.Commits, deep = false).forall { case (path, entry) =>
    Names.batchOf(path).forall(batch => batch < from || reader.isLogged(batch, entry))
  }

  def hasDamage: Boolean = damaged.nonEmpty

  /** Data files that hold only files of listed snapshots. */
  def snapshotFiles: Vector[String] =
    reader.standing(newest, objects).flatMap(_.pieces).flatten.distinct.sorted
      .filter(path => objects.contains(path) && !damaged(path) && reader.holdsOnlySnapshots(path, objects))

  /** Damages an object in `act`. Versions that need it are not checked until it is restored. */
  def damages(path: String)(act: => Unit): Unit = {
    damaged += path
    quietly(act)
  }

  /** Restores a damaged object in `act`, unless it is not needed any more. */
  def restores(path: String)(act: => Unit): Unit = {
    damaged -= path
    quietly(act)
    versions.restored()
    checkAll(s"after $path was restored")
  }

  private def quietly(act: => Unit): Unit = {
    isDamaging = true
    act
    isDamaging = false
  }

  def changed(change: StorageChange): Unit = {
    val path = change.path
    val batch = if (path.startsWith(Names.Commits + "/")) Names.batchOf(path) else None
    if (
      change.after.isEmpty && purgers(change.writer) && !tools.contains(change.writer) &&
      batch.exists(of => of >= purgedBelow && isCommittedSinceUserActed(of))
    )
      undecided(s"a deletion that was requested before a rollback takes effect: $path")
    if (change.after.isEmpty && replaced.contains(newest) && path.startsWith(Names.State + "/"))
      undecided(s"a run that began on a replaced entry deletes a file that the new entry may need: $path")
    if (change.after.isEmpty && late.name(path))
      undecided(s"a deletion from before a rollback takes a file of an entry from before it: $path")
    (batch, change.after) match {
      case (Some(number), Some(object_)) => entryWritten(number, object_, change)
      case _ => ()
    }
    epochs.changed(change)
    leftovers.changed(change)
    val plan = if (path.startsWith(Names.Offsets + "/")) Names.batchOf(path) else None
    if (change.after.nonEmpty && plan.exists(_ > newest + 1) && userActedAt >= 0)
      undecided(s"a plan from before a rollback: $path")
    if (!userActs && !isDamaging && tools.isEmpty && !ObjectMap.isUnpublished(path) && matters(change))
      checkAll(s"after a change of $path")
  }

  /** Whether the change may affect a state. Checking all states takes most of the time of a world. */
  private def matters(change: StorageChange): Boolean = {
    val path = change.path
    val isNewer = path.startsWith(Names.Commits + "/") && change.after.nonEmpty
    isNewer || change.before.nonEmpty && !checked.exists(of => of.covers(newest, checkedFrom) && !of.seen(path))
  }

  private def checkedFrom: Map[String, Long] = stores.map { store =>
    store -> pinned.fold(retainedFrom(store))(batch => math.min(batch + 1, retainedFrom(store)))
  }.toMap

  private def isCommittedSinceUserActed(batch: Long): Boolean =
    records.get(batch).exists(_.atNanos > userActedAt)

  /**
   * Checks that every retained version can be rebuilt from storage and is the committed one, and that the oldest can be rebuilt
   * even after a rollback to it, without the entries above it.
   */
  def checkAll(when: => String): Unit = if (verdict.violation.isEmpty && !undecidable) {
    reader.forgetList()
    val of = ToCheck(
      checkedFrom,
      stores.map(retainedFrom).max,
      isDamaged = damaged.nonEmpty,
      isReplaced = replaced.nonEmpty
    )
    val seen = objects.seenBy(versions.check(of, when))
    checked = Some(Checked(newest, of.from, seen))
  }

  private def entryWritten(batch: Long, entry: StoredBytes, change: StorageChange): Unit =
    CommitContent.intentOf(entry.bytes).flatMap(intents.get) match {
      case None => verdict.violate(s"${change.path} belongs to no commit: ${change.writer.name} wrote it")
      case Some(intent) if intent.batch != batch =>
        verdict.violate(s"${change.path} is for batch ${intent.batch}")
      case Some(intent) => take(batch, intent, change, entry)
    }

  private def take(batch: Long, intent: Intent, change: StorageChange, entry: StoredBytes): Unit =
    records.get(batch) match {
      case Some(standing) if change.before.nonEmpty && (standing.intent ne intent) =>
        if (config.storage.createsExclusively)
          verdict.violate(s"${intent.who} replaced commits/$batch of ${standing.intent.who}")
        else {
          replaced = Some(batch)
          if (batch < newest) undecided("an entry below later ones is replaced") else record(batch, intent)
        }
      // The entry appears late or again after its deletion: nothing is built on it.
      case Some(_) => ()
      case None if batch <= newest => ()
      case None if intent.madeAtNanos <= userActedAt && !fits(batch, intent, entry) =>
        undecided(s"an entry for batch $batch from before a rollback")
      case None =>
        if (intent.madeAtNanos <= userActedAt) late.add(batch)
        record(batch, intent)
    }

  /** Whether Spark finds the same state as if the entry had been written before the rollback. */
  private def fits(batch: Long, intent: Intent, entry: StoredBytes): Boolean =
    reader.namedBy(batch, entry).forall(objects.contains) && batch <= newest + 1 &&
      objects.contains(Names.offset(batch)) && stores.forall { store =>
        intent.wins(store).change.baseFingerprint == state(store, batch).getOrElse(Lineage.Empty).fingerprint
      }

  private def record(batch: Long, intent: Intent): Unit = {
    verdict.note(s"batch $batch is committed by ${intent.who}")
    refuseLate(intent)
    val states = stores.map { store =>
      val base = state(store, batch).getOrElse(Lineage.Empty)
      val change = intent.wins(store).change
      if (change.baseFingerprint != base.fingerprint) {
        if (replaced.nonEmpty) undecided("an entry is replaced before the entry that is built on it is created")
        else if (besideTools(intent.who)) undecided("a run began on an entry that a tool was deleting")
        else verdict.violate(s"batch $batch of ${intent.who} was committed for $store on another state than $base")
      }
      store -> (base + change.tag)
    }.toMap
    records(batch) = Committed(intent, states, replaced.nonEmpty, scheduler.nowNanos)
    def listed(store: String) = reader.listedFor(store, batch, objects).map(of => s"${of.state.version} in ${of.batch}")
    verdict.note(stores.map(of => listed(of).mkString(s"$of: ", ", ", "")).mkString("snapshots: ", "; ", ""))
    states.foreach { case (store, state) =>
      val key = (store, batch + 1)
      everCommitted(key) = everCommitted.getOrElse(key, Set.empty[Lineage]) + state
    }
  }
}
