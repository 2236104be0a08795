package sparkdstl.sim.model

import java.util.UUID

import scala.collection.mutable

import sparkdstl.sim.machines.{ObjectMap, SimProcess, SimScheduler, StorageChange, StoredBytes}
import sparkdstl.sim.world.{Reach, SimConfig, Verdict}

/** What the winner of a store did, and the checkpoint id it gave to what came of it. */
final case class Win(attempt: Long, change: Change, id: Option[String])

/** A driver is about to write a commit entry. */
final case class Intent(number: Long, who: String, batch: Long, wins: Map[String, Win], madeAtNanos: Long)

/** An entry that stands: what the state after its batch is, and when it appeared. */
final case class Committed(intent: Intent, states: Map[String, Lineage], tainted: Boolean, atNanos: Long)

/**
 * What must hold. It sees Spark's side of the world and the objects on storage, nothing of the log's own, and rebuilds
 * states from storage alone after each change to it.
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
  // What the log said of commits that have failed, by the intent's number.
  private val refusals = mutable.LongMap.empty[String]
  private val records = mutable.TreeMap.empty[Long, Committed]
  private val everCommitted = mutable.Map.empty[(String, Long), Set[Lineage]]
  private val released = mutable.Map.empty[String, Long].withDefaultValue(0L)
  private var purgedBelow = 0L
  private val alsoPurged = mutable.Set.empty[Long]
  private var userActedAt = -1L
  private var userActs = false
  private var writtenOver = false
  private var lastWrittenOver = -1L
  private val epochs = new EpochOracle(config, verdict, reach)
  private val leftovers = new LeftoverOracle(config, reader, verdict)
  private val purgers = mutable.Set.empty[SimProcess]
  // Objects that are not what they were, and come back.
  private val damaged = mutable.Set.empty[String]
  private var isDamaging = false
  // When each run began.
  private val runs = mutable.Map.empty[UUID, Long]
  // The newest entries may not list the snapshots that versions up to this one need, unless it is the newest.
  private var listsLackUpTo = 0L
  // Processes in which a tool deletes entries now, and since when.
  private val tools = mutable.Map.empty[SimProcess, Long]
  // Stores of which two snapshots stood.
  private val withSpare = mutable.Set.empty[String]
  // The snapshots that a user's rollback left: the log below them may have been released.
  private val spareFrom = mutable.Map.empty[String, Long].withDefaultValue(0L)
  // While it is looked what would be left if the entries above this batch's were gone.
  private var upTo = Option.empty[Long]
  private var ignored = Option.empty[StateName]
  private var checked = Option.empty[Checked]

  val stores: Vector[String] = for {
    partition <- (0 until config.partitions).toVector
    store <- 0 until config.storesPerTask
  } yield StoreNames.directory(partition, store, config.storesPerTask)

  /** The newest committed batch, or -1. */
  def newest: Long = records.lastOption.fold(-1L)(_._1)

  def state(store: String, version: Long): Option[Lineage] =
    if (version == 0) Some(Lineage.Empty) else records.get(version - 1).map(_.states(store))

  def committed(batch: Long): Option[Committed] = records.get(batch)

  def retainedFrom(store: String): Long =
    Vector(purgedBelow + 1, released(store), newest + 2 - config.batchesToRetain, 0L).max

  /** Spark has requested the deletion of all entries below this batch's. */
  def retainedFromBatch: Long = purgedBelow

  /** The lowest version of the store that Spark's own maintenance of plain snapshots needs. */
  def releasedBelow(store: String): Long = released(store)

  /** Whether Spark has kept what it takes to continue after this batch. */
  def canRollBackTo(batch: Long): Boolean = batch >= purgedBelow && records.contains(batch) && tools.isEmpty &&
    stores.forall(batch + 1 >= retainedFrom(_))

  /**
   * Something happened that leaves nothing to be held: a write from before a rollback took effect after it, and
   * what Spark finds does not fit together.
   */
  var undecidable: Boolean = false

  def intend(who: String, batch: Long, wins: Map[String, Win]): Intent = {
    val intent = Intent(intents.size.toLong + 1, who, batch, wins, scheduler.nowNanos)
    intents.put(intent.number, intent): Unit
    verdict.note(
      s"$who is about to commit batch $batch: ${wins.map { case (s, w) => s"$s ${w.change.tag}" }.mkString(", ")}"
    )
    intent
  }

  /** The log has told Spark that the batch is committed. */
  def acknowledged(intent: Intent): Unit = {
    verdict.note(s"${intent.who} has committed batch ${intent.batch}")
    val isCommitted = records.get(intent.batch).exists(_.intent eq intent)
    if (config.storage.createsExclusively && !isCommitted && intent.madeAtNanos > userActedAt)
      verdict.violate(
        s"${intent.who} has committed batch ${intent.batch} by its answer, and the batch is " +
          records.get(intent.batch).fold("uncommitted")(r => s"${r.intent.who}'s") + "; " +
          objects.story(Names.commit(intent.batch))
      )
  }

  /** The log has answered Spark that the batch is not committed, as it may for a damaged entry: its writer is unknown. */
  def refused(intent: Intent, error: Throwable): Unit = if (!damaged(Names.commit(intent.batch))) {
    refusals(intent.number) = error.toString
    if (records.get(intent.batch).exists(_.intent eq intent)) refuseLate(intent)
  }

  private def refuseLate(intent: Intent): Unit = refusals.get(intent.number).foreach { error =>
    if (config.storage.createsExclusively && intent.madeAtNanos > userActedAt)
      verdict.violate(
        s"${intent.who} has not committed batch ${intent.batch} by its answer, and its entry exists: $error"
      )
  }

  def runBegins(run: UUID): Unit = runs(run) = scheduler.nowNanos

  /**
   * A task has read a state to build on. A run from before a user deleted something may read some of what is left, and commits nothing;
   * so may one while a tool deletes.
   */
  def loaded(who: String, run: UUID, store: String, version: Long, found: Lineage): Unit =
    if (version == 0) { if (found != Lineage.Empty) verdict.violate(s"$who found $found at version 0 of $store") }
    else if (
      !writtenOver && !isToolAtWork && runs(run) > userActedAt && !everCommitted.get((store, version)).exists(_(found))
    )
      verdict.violate(
        s"$who loaded version $version of $store as $found, which was never committed; committed: " +
          state(store, version).fold("nothing")(_.toString)
      )

  /** Spark has asked for the deletion of entries below this batch. */
  def purged(threshold: Long): Unit = {
    purgedBelow = math.max(purgedBelow, threshold)
    while (alsoPurged(purgedBelow)) purgedBelow += 1
  }

  /** A tool has asked for the deletion of an entry that is not the newest any more: it goes with those below. */
  def purgedAlone(batch: Long): Unit = {
    alsoPurged += batch
    purged(purgedBelow)
  }

  def releasedBelow(store: String, version: Long): Unit = released(store) = math.max(released(store), version)

  /** A user deletes what he wants; `act` does it. */
  def userActs(keepBatches: Long => Boolean)(act: => Unit): Unit = {
    userActs = true
    userActedAt = scheduler.nowNanos
    records.keys.filterNot(keepBatches).toVector.foreach(records.remove(_): Unit)
    act
    withSpare.clear()
    stores.foreach { store =>
      spareFrom(store) = reader.listedFor(store, newest, objects).lastOption.fold(0L)(_.state.version)
    }
    userActs = false
    checkAll("after a user's deletion")
  }

  /**
   * A tool begins to delete entries by name, in this process. Until it has ended nothing is promised of the newest entries. What it
   * has requested may take effect later, when others are there.
   */
  def toolBegins(process: SimProcess): Unit = {
    purgers += process
    tools(process) = scheduler.nowNanos
  }

  /** It has ended: what is left on storage is the history. `act` receives the newest batch. */
  def toolEnds(process: SimProcess, isKnown: Boolean)(act: Long => Unit): Unit =
    tools.remove(process).foreach { since =>
      val left = newestOnStorage
      // An entry that was requested before comes back above the deleted ones.
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

  /** Data files of nothing but snapshots, which stand. */
  def snapshotFiles: Vector[String] =
    reader.standing(newest, objects).flatMap(_.pieces).flatten.distinct.sorted
      .filter(path => objects.contains(path) && !damaged(path) && reader.holdsOnlySnapshots(path, objects))

  /** The object is damaged; `act` does it. Until it is restored nothing is promised of what needs it. */
  def damages(path: String)(act: => Unit): Unit = {
    damaged += path
    quietly(act)
  }

  /** What was there is there again, or is not needed any more; `act` does it. */
  def restores(path: String)(act: => Unit): Unit = {
    damaged -= path
    quietly(act)
    // A run that could not read an entry does not list the snapshots in it.
    withSpare.clear()
    stores.foreach(store => spareFrom(store) = math.max(spareFrom(store), newest + 1))
    listsLackUpTo = newest + 1
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
    ) {
      verdict.note(s"a deletion of before takes effect now: $path")
      undecidable = true
    }
    if (change.after.isEmpty && lastWrittenOver == newest && path.startsWith(Names.State + "/")) {
      verdict.note(s"a run that began on an entry that is written over deletes what that entry made needless: $path")
      undecidable = true
    }
    (batch, change.after) match {
      case (Some(number), Some(object_)) => entryWritten(number, object_, change)
      case _ => ()
    }
    epochs.changed(change)
    leftovers.changed(change)
    val plan = if (path.startsWith(Names.Offsets + "/")) Names.batchOf(path) else None
    if (change.after.nonEmpty && plan.exists(_ > newest + 1) && userActedAt >= 0) {
      verdict.note(s"a plan from before a rollback: $path")
      undecidable = true
    }
    if (!userActs && !isDamaging && tools.isEmpty && !ObjectMap.isUnpublished(path) && matters(change))
      checkAll(s"after a change of $path")
  }

  /** Whether a state may be another than before. To look at all of them is most of what a world costs. */
  private def matters(change: StorageChange): Boolean = {
    val path = change.path
    val isNewer = path.startsWith(Names.Commits + "/") && change.after.nonEmpty
    isNewer || change.before.nonEmpty && !checked.exists(of => of.covers(newest, retained) && !of.seen(path))
  }

  private def retained: Vector[Long] = stores.map(retainedFrom)

  private def isCommittedSinceUserActed(batch: Long): Boolean =
    records.get(batch).exists(_.atNanos > userActedAt)

  /**
   * Every version that Spark still counts on can be rebuilt from storage, and is what was committed. The oldest can be rebuilt
   * even if the entries above it are deleted, as by a rollback to it.
   */
  def checkAll(when: => String): Unit = if (verdict.violation.isEmpty && !undecidable) {
    reader.forgetList()
    val seen = objects.seenBy(checkVersions(when))
    checked = Some(Checked(newest, retained, seen))
  }

  private def checkVersions(when: => String): Unit = {
    stores.foreach { store =>
      val known = mutable.Map.empty[(Long, Option[String]), Either[String, Lineage]]
      var version = newest + 1
      while (version >= retainedFrom(store) && version > 0) {
        records.get(version - 1).foreach { record =>
          check(store, version, record, known).foreach { problem =>
            verdict.violate(s"version $version of $store, committed by ${record.intent.who}, $problem, $when")
          }
        }
        version -= 1
      }
      if (config.logsSnapshots && !writtenOver && damaged.isEmpty) checkSpare(store, when)
    }
    val oldest = retained.max
    if (oldest > 0 && oldest <= newest) records.get(oldest - 1).foreach { record =>
      upTo = Some(oldest - 1)
      stores.foreach { store =>
        check(store, oldest, record, mutable.Map.empty).foreach { problem =>
          verdict.violate(s"version $oldest of $store $problem, $when, once entries above ${oldest - 1} are deleted")
        }
      }
      upTo = None
    }
  }

  /** Of the newest two snapshots one may be damaged. */
  private def checkSpare(store: String, when: => String): Unit =
    reader.listedFor(store, newest, objects).map(of => of.state.version -> of.state).toMap.toVector.sortBy(_._1) match {
      case _ :+ ((_, newestKey)) if newestKey.version > newest + 1 => ()
      case _ :+ ((spare, _)) :+ _ if spare < spareFrom(store) => ()
      case _ :+ _ :+ ((version, key)) =>
        withSpare += store
        val isPartOfCommit = records.get(version - 1).forall(_.intent.wins(store).change.needsSnapshot)
        if (!isPartOfCommit) {
          ignored = Some(key)
          records.get(newest).flatMap(check(store, newest + 1, _, mutable.Map.empty)).foreach { problem =>
            verdict.violate(
              s"version ${newest + 1} of $store without its newest snapshot, of $version, $problem, $when"
            )
          }
          ignored = None
        }
      // Where there are plain ones, Spark's own maintenance says what may go, and is content with one.
      case standing if withSpare(store) && plainSnapshots(store).isEmpty && standing.size < 2 =>
        verdict.violate(s"of the snapshots of $store only ${standing.map(_._1).mkString} stands, $when")
      case _ => ()
    }

  private def plainSnapshots(store: String): Iterable[Long] = records.collect {
    case (batch, record) if objects.contains(Names.snapshot(store, batch + 1, record.intent.wins(store).id)) =>
      batch + 1
  }

  private def check(
      store: String,
      version: Long,
      record: Committed,
      known: mutable.Map[(Long, Option[String]), Either[String, Lineage]]
  ): Option[String] = {
    val wanted = record.states(store)
    rebuild(store, version, record.intent.wins(store).id, known) match {
      case Left(_) if damaged.nonEmpty || version <= math.min(listsLackUpTo, newest) => None
      case Left(problem) => Some(s"cannot be rebuilt: $problem")
      case Right(found) if found != wanted && !record.tainted => Some(s"is $found and must be $wanted")
      case _ => None
    }
  }

  private def rebuild(
      store: String,
      version: Long,
      id: Option[String],
      known: mutable.Map[(Long, Option[String]), Either[String, Lineage]]
  ): Either[String, Lineage] =
    if (version == 0) Right(Lineage.Empty)
    else
      known.getOrElse(
        (version, id), {
          val name = StateName(store, version, id)
          val result = lookUpSnapshot(name) match {
            case SnapshotLookup.Found(files) => Right(Lineage(files.flatMap(_.lineage.tags)))
            case SnapshotLookup.Damaged(_) if damaged.nonEmpty => replay(store, version, id, known)
            case SnapshotLookup.Damaged(why) => Left(s"${name.zip}: $why")
            case SnapshotLookup.NotThere =>
              objects.get(Names.snapshot(store, version, id)).map(_.bytes) match {
                case Some(snapshot) => Right(Lineage.decode(snapshot))
                case None => replay(store, version, id, known)
              }
          }
          known((version, id)) = result
          result
        }
      )

  private def lookUpSnapshot(state: StateName): SnapshotLookup =
    if (ignored.contains(state)) SnapshotLookup.NotThere else reader.snapshot(state, upTo.getOrElse(newest), objects)

  private def replay(
      store: String,
      version: Long,
      id: Option[String],
      known: mutable.Map[(Long, Option[String]), Either[String, Lineage]]
  ): Either[String, Lineage] = {
    val state = StateName(store, version, id)
    val bytes = reader.changelog(state, objects) match {
      case found: Lookup.Found => Right(found)
      case Lookup.Damaged(why) => Left(s"${state.changelog}: $why")
      case Lookup.NotInLog =>
        objects
          .get(s"${Names.State}/${state.changelog}")
          .map(stored => Lookup.Found(stored.bytes))
          .toRight(s"${state.changelog} is nowhere; ${objects.story(Names.commit(version - 1))}")
    }
    bytes
      .flatMap(_.change.toRight(s"${state.changelog} is not what was written"))
      .filterOrElse(!_.needsSnapshot, s"${state.changelog} cannot be replayed, and its snapshot is not there")
      .flatMap(change => rebuild(store, version - 1, change.baseId, known).map(_ + change.tag))
  }

  private def entryWritten(batch: Long, entry: StoredBytes, change: StorageChange): Unit =
    CommitContent.intentOf(entry.bytes).flatMap(intents.get) match {
      case None => verdict.violate(s"${change.path} has no known content: ${change.writer.name} wrote it")
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
          writtenOver = true
          lastWrittenOver = batch
          if (batch < newest) {
            verdict.note("an entry that others are built on is written over")
            undecidable = true
          } else record(batch, intent)
        }
      // It comes back after its deletion, or late: nothing is built on it.
      case Some(_) => ()
      case None if batch <= newest => ()
      case None if intent.madeAtNanos <= userActedAt && !fits(batch, intent, entry) =>
        verdict.note(s"an entry for batch $batch from before a rollback")
        undecidable = true
      case None => record(batch, intent)
    }

  /** Whether what Spark finds is what it would find had the entry been written in its time. */
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
        if (writtenOver) {
          verdict.note("an entry that was built on is written over, before the one built on it came")
          undecidable = true
        } else verdict.violate(s"batch $batch of ${intent.who} was committed for $store on another state than $base")
      }
      store -> (base + change.tag)
    }.toMap
    records(batch) = Committed(intent, states, writtenOver, scheduler.nowNanos)
    verdict.note(
      stores.map { store =>
        reader.listedFor(
          store,
          batch,
          objects
        ).map(of => s"${of.state.version} in ${of.batch}").mkString(s"$store: ", ", ", "")
      }.mkString("snapshots: ", "; ", "")
    )
    states.foreach { case (store, state) =>
      val key = (store, batch + 1)
      everCommitted(key) = everCommitted.getOrElse(key, Set.empty[Lineage]) + state
    }
  }
}

/** What was checked: a change of an object that was not looked at changes nothing of the same versions. */
private final case class Checked(newest: Long, retained: Vector[Long], seen: collection.Set[String]) {
  def covers(newestNow: Long, retainedNow: Vector[Long]): Boolean = newest == newestNow && retained == retainedNow
}
