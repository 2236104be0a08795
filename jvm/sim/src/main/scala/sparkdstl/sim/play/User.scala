package sparkdstl.sim.play

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.sim.model.Names
import sparkdstl.sim.world.{Chance, FaultKind, World}

/** Somebody with a shell, tools and the Spark that came without the log, mostly at work between two runs. */
private[play] final class User(world: World, stock: StockSpark, chance: Chance) {
  import world.{config, faults, model, objects, reach, verdict}

  private val shell = world.newProcess("user")
  private val MaxActs = 3
  private var acts = 0

  def mayAct: Boolean = acts < MaxActs && model.newest >= 2 && !model.hasDamage

  /**
   * Completes when it is done.
   *
   * @param stopAll ends all processes of the query but those of one application: what they have requested may still happen
   */
  def act(application: Application, stopAll: Option[Application] => Unit): Future[Unit] = {
    val back = model.newest - chance.between(1, config.batchesToRetain)
    if (model.canRollBackTo(back) && faults.strikes(FaultKind.Rollback, chance)) {
      // With plain snapshots its executors might upload another one of what is gone, as with stock Spark.
      val survivor = Some(application).filter(_ => application.isAlive && config.logsSnapshots && chance.happens(0.5))
      if (survivor.nonEmpty) reach.met("rollback-while-the-application-lives")
      stopAll(survivor)
      rollBack(back)
      Future.unit
    } else if (faults.strikes(FaultKind.StockBatches, chance)) {
      stopAll(None)
      acts += 1
      (1 to chance.between(1, 3)).foreach(_ => stock.batch(model.newest + 1, withSnapshot = false))
      Future.unit
    } else if (
      config.checkpointFormat == 1 && config.logsSnapshots && chance.happens(faults(FaultKind.PurgeAllCommits)) &&
      model.canRollBackTo(model.newest - 1) && model.canRollBackTo(model.newest) &&
      model.areLogged(from = 0)
    )
      purgeAll(application)
    else Future.unit
  }

  /** Deletes the entries above a batch, and the snapshots of what they led to. */
  private def rollBack(keep: Long): Unit = {
    acts += 1
    verdict.note(s"a user rolls back to batch $keep")
    val offsetsToo = chance.between(0, 1)
    model.userActs(_ <= keep) {
      delete(Names.Commits)(path => Names.batchOf(path).exists(_ > keep))
      delete(Names.Offsets)(path => Names.batchOf(path).exists(_ > keep + offsetsToo))
      deleteSnapshotsAbove(keep + 1)
    }
  }

  /** What a tool leaves that deletes entries alone; the next batch is planned still. */
  private def deleteRestAbove(batch: Long): Unit = {
    deleteSnapshotsAbove(batch + 1)
    delete(Names.Offsets)(path => Names.batchOf(path).exists(_ > batch + 1))
  }

  /** As the operator's page says: Spark would take them for snapshots of what is committed instead. */
  private def deleteSnapshotsAbove(version: Long): Unit =
    delete(Names.State)(path => Names.snapshotOf(path).exists(_._1 > version))

  private def delete(directory: String)(which: String => Boolean): Unit =
    objects.below(directory, deep = true).map(_._1).filter(which).foreach(objects.delete(_, shell))

  /**
   * Deletes all entries through the log, in ascending order as Spark's own code does, or in the order of a listing. Only where
   * no batch is planned beyond them: that one would run again then, on a state whose entry was deleted as the newest.
   */
  private def purgeAll(application: Application): Future[Unit] =
    application.lastQuery.filter(_ => application.isAlive && !objects.contains(Names.offset(model.newest + 1))).fold(
      Future.unit
    ) { ended =>
      acts += 1
      reach.met(FaultKind.PurgeAllCommits)
      val newest = model.newest
      val listed = objects.below(Names.Commits, deep = false).flatMap(o => Names.batchOf(o._1))
      val inOrder = chance.happens(0.7)
      if (!inOrder) reach.met("purge-in-the-order-of-a-listing")
      verdict.note(s"a tool purges all entries, the newest is $newest")
      val begunAt = world.scheduler.nowNanos
      val retained = model.stores.map(model.retainedFrom).max
      model.toolBegins(application.driver)
      implicit val executor: ExecutionContext = application.driver.executor
      val purged = (if (inOrder) listed.sorted else listed)
        .foldLeft(Future.unit)((before, batch) => before.flatMap(_ => ended.log.delete(batch)))
      purged.transform { result =>
        model.toolEnds(application.driver, result.isSuccess) { left =>
          // What was requested below may go, as with a purge of Spark's own.
          model.purged(left)
          // Its state was not retained before: a listing had the newest entries first.
          if (left + 1 < retained) model.undecidable = true
          deleteRestAbove(left)
        }
        // A late request of the ended query may have planned the next batch meanwhile, so that the newest entry stays; or have
        // written that again.
        val isPlanned = objects.contains(Names.offset(newest + 1))
        val isLate = objects.get(Names.commit(newest)).exists(_.atNanos > begunAt)
        if (result.isSuccess && inOrder && model.newest != newest - 1 && !isPlanned && !isLate && !model.undecidable)
          verdict.violate(s"a purge of all entries up to $newest has left ${model.newest} as the newest")
        scala.util.Success(())
      }
    }

  /**
   * A tool deletes the newest entry through the file manager of a query that runs. While a run begins, it is like a deletion from
   * another process: what the run has read by then is not the log any more, with stock Spark as well.
   */
  def deleteNewest(application: Application): Unit =
    for (query <- application.query if mayDeleteNewest && query.log.hasBegun) {
      acts += 1
      reach.met(FaultKind.NewestDeleted)
      val newest = model.newest
      verdict.note(s"a tool deletes commits/$newest while ${query.name} runs")
      model.toolBegins(application.driver)
      query.log.delete(newest).onComplete { result =>
        model.toolEnds(application.driver, result.isSuccess)(deleteRestAbove)
        if (!model.undecidable && model.newest >= newest && !objects.contains(Names.commit(newest)))
          verdict.violate(s"entries above commits/$newest were created although it was deleted")
        if (model.newest > newest) model.purgedAlone(newest)
      }(application.driver.executor)
    }

  private def mayDeleteNewest: Boolean =
    mayAct && config.logsSnapshots && model.canRollBackTo(model.newest - 1) && model.areLogged(from = model.newest - 1)
}
