package sparkdstl.sim.world

import java.nio.charset.StandardCharsets.UTF_8

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.sim.model.{Change, CommitContent, Names, Win}

/** Somebody with a shell and the Spark that came without the log, at work between two runs. */
private[world] final class User(world: World, chance: Chance) {
  import world.{config, faults, model, objects, verdict}

  private val shell = world.newProcess("user")
  private val MaxActs = 3
  private var acts = 0

  def mayAct: Boolean = acts < MaxActs && model.newest >= 2

  /**
   * Completes when it is done.
   *
   * @param stopAll ends all processes of the query: what they have asked of storage may still happen
   */
  def act(application: Application, stopAll: () => Unit): Future[Unit] = {
    val back = model.newest - chance.between(1, config.batchesToRetain)
    if (model.canGoBackTo(back) && chance.happens(faults(FaultKind.GoBack))) {
      stopAll()
      goBack(back)
      Future.unit
    } else if (chance.happens(faults(FaultKind.StockBatches))) {
      stopAll()
      val batches = chance.between(1, 3)
      (1 to batches).foreach(_ => stockBatch())
      Future.unit
    } else if (
      config.checkpointFormat == 1 && chance.happens(faults(FaultKind.PurgeAllCommits)) &&
      model.canGoBackTo(model.newest - 1)
    )
      purgeAll(application)
    else Future.unit
  }

  /** Deletes the entries above a batch, and the snapshots of what they led to. */
  private def goBack(keep: Long): Unit = {
    acts += 1
    verdict.note(s"a user goes back to batch $keep")
    val offsetsToo = chance.between(0, 1)
    model.userActs(_ <= keep) {
      delete(Names.Commits)(path => Names.batchOf(path).exists(_ > keep))
      delete(Names.Offsets)(path => Names.batchOf(path).exists(_ > keep + offsetsToo))
      deleteSnapshotsAbove(keep + 1)
    }
  }

  /** As the operator's page says: Spark would take them for snapshots of what is committed instead. */
  private def deleteSnapshotsAbove(version: Long): Unit =
    delete(Names.State)(path => Names.snapshotOf(path).exists(_._1 > version))

  private def delete(directory: String)(which: String => Boolean): Unit =
    objects.below(directory, deep = true).map(_._1).filter(which).foreach(objects.delete(_, shell))

  /**
   * Deletes all entries the way Spark's own code does, through the log, in ascending order. Only where no batch is planned
   * beyond them: that one would run again then, on a state whose entry was deleted as the newest.
   */
  private def purgeAll(application: Application): Future[Unit] =
    application.lastQuery.filter(_ => application.isAlive && !objects.contains(Names.offset(model.newest + 1))).fold(
      Future.unit
    ) { ended =>
      acts += 1
      val newest = model.newest
      verdict.note(s"a tool purges all entries, the newest is $newest")
      val batches = objects.below(Names.Commits, deep = false).flatMap(o => Names.batchOf(o._1)).sorted
      model.userActs(_ < newest)(deleteSnapshotsAbove(newest))
      // A run that has not noticed yet that its query has ended takes it for Spark's own purge. What stands is the state that
      // the newest batch runs again on.
      model.purged(newest - 1)
      model.purgesAll(application.driver)
      implicit val executor: ExecutionContext = application.driver.executor
      batches
        .foldLeft(Future.unit)((before, batch) => before.flatMap(_ => ended.log.delete(batch)))
        .recover { case _ => model.undecidable = true }
    }

  /** A batch of a Spark without the log: plain changelogs, a plain entry. */
  private def stockBatch(): Unit = {
    acts += 1
    val batch = model.newest + 1
    val before = model.committed(batch - 1)
    val wins = model.stores.map { store =>
      val base = model.state(store, batch).get
      val id = if (config.checkpointFormat == 2) Some(chance.nextUuid().toString) else None
      val baseId = before.flatMap(_.intent.wins(store).id)
      store -> Win(0, Change(s"stock/$batch:$store:0", base.fingerprint, baseId), id)
    }.toMap
    if (!objects.contains(Names.offset(batch)))
      objects.publish(Names.offset(batch), s"stock plans $batch".getBytes(UTF_8), shell)
    wins.foreach { case (store, win) =>
      val name = s"${batch + 1}${win.id.fold("")("_" + _)}.changelog"
      objects.publish(s"${Names.State}/$store/$name", Change.encode(win.change, 60), shell)
    }
    val intent = model.intend("stock Spark", batch, wins)
    val ids = wins.flatMap { case (store, win) => win.id.map(store -> _) }
    if (!objects.contains(Names.commit(batch)))
      objects.publish(Names.commit(batch), CommitContent.encode(intent.number, ids), shell)
  }
}
