// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.play

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.sim.model.Names
import sparkdstl.sim.world.{Chance, FaultKind, World}

/** A user with a shell, tools and stock Spark, who acts mostly between two runs. */
private[play] final class User(world: World, stock: StockSpark, chance: Chance) {
  import world.{config, faults, model, objects, reach, verdict}

  private val shell = world.newProcess("user")
  private val MaxActs = 3
  private var acts = 0

  def mayAct: Boolean = acts < MaxActs && model.newest >= 2 && !model.hasDamage

  /**
   * Performs at most one act; the future completes when it is done.
   *
   * @param stopAll crashes all processes of the query except those of one application; their requests may still take effect
   */
  def act(application: Application, stopAll: Option[Application] => Unit): Future[Unit] = {
    val back = model.newest - chance.between(1, config.batchesToRetain)
    if (model.canRollBackTo(back) && faults.strikes(FaultKind.Rollback, chance)) {
      // With plain snapshots its executors might upload a snapshot of a deleted version, as with stock Spark.
      val survivor = Some(application).filter(_ => application.isAlive && config.logsSnapshots && chance.happens(0.5))
      if (survivor.nonEmpty) reach.met("rollback-while-the-application-lives")
      stopAll(survivor)
      rollBack(back)
      Future.unit
    } else if (faults.strikes(FaultKind.StockBatches, chance)) {
      stopAll(None)
      acts += 1
      // Spark deletes plain changelogs, whatever is pinned.
      model.unpins()
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

  /** Deletes the entries above a batch and the snapshots of their versions. */
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

  /** Deletes the files that a tool leaves which deletes entries only; the plan of the next batch stays. */
  private def deleteRestAbove(batch: Long): Unit = {
    deleteSnapshotsAbove(batch + 1)
    delete(Names.Offsets)(path => Names.batchOf(path).exists(_ > batch + 1))
  }

  /** docs/inspect.md requires it: Spark would take these snapshots for those of the new versions. */
  private def deleteSnapshotsAbove(version: Long): Unit =
    delete(Names.State)(path => Names.snapshotOf(path).exists(_._1 > version))

  private def delete(directory: String)(which: String => Boolean): Unit =
    objects.below(directory, deep = true).map(_._1).filter(which).foreach(objects.delete(_, shell))

  /**
   * Deletes all entries through the log, in ascending order like Spark, or in the order of a listing. Only if
   * no later batch is planned: it would run again on a state whose entry was deleted as the newest.
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
          // The requested entries below may be deleted, as after a purge by Spark.
          model.purged(left)
          // Its state was not retained before: the listing had the newest entries first.
          if (left + 1 < retained) model.undecidable = true
          deleteRestAbove(left)
        }
        // A late request of the ended query may have planned the next batch, so that the newest entry stays, or
        // have written the newest entry again.
        val isPlanned = objects.contains(Names.offset(newest + 1))
        val isLate = objects.get(Names.commit(newest)).exists(_.atNanos > begunAt)
        if (result.isSuccess && inOrder && model.newest != newest - 1 && !isPlanned && !isLate && !model.undecidable)
          verdict.violate(s"a purge of all entries up to $newest has left ${model.newest} as the newest")
        scala.util.Success(())
      }
    }

  /**
   * Deletes the newest entry through the file manager of a running query. While the run begins, it is like a deletion from
   * another process: the run has read an outdated log, as with stock Spark.
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
