// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.play

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.sim.machines.{SimNetwork, SimProcess}
import sparkdstl.sim.world.{Chance, FaultKind, Faults, World}

/** Starts applications and injects faults of whole processes until enough batches are committed. */
final class Director(world: World, chance: Chance) {
  import world.{config, faults, model, objects, reach, scheduler, verdict}

  private val WildMillis = 20 * 60000L
  private val RestartCheckMillis = 500.0
  private val LostMessages = 10

  private val stock = new StockSpark(world, chance)
  private val user = new User(world, stock, chance)
  private val damage = new Damage(world, chance)
  private val reader = new PinningReader(world, chance)
  private var applications = Vector.empty[Application]
  private var everStarted = Vector.empty[Application]
  private var wild = true
  private var acting = false
  // The number of batches before the faults end; long pauses extend it.
  private var batches = config.batches.toLong

  def state: String =
    s"${if (wild) "wild" else world.ending.state}, ${model.newest} is the newest batch"

  def begin(): Unit = {
    stock.begin(config.firstBatch)
    start()
    tickLater()
  }

  private def live: Vector[Application] = applications.filter(_.isAlive)

  private def running: Vector[Application] = live.filter(_.query.nonEmpty)

  /** Creates an application that has not started its query. */
  def newApplication(): Application = {
    val application = new Application(s"app${everStarted.size + 1}", world)
    applications = live :+ application
    everStarted = everStarted :+ application
    application
  }

  private def start(): Unit = {
    val application = newApplication()
    application.driver.onKill(() => crash(application))
    begin(application)
  }

  private def begin(application: Application): Unit = {
    val batches = if (config.shortRuns) Some(chance.between(1, 2)) else None
    application.startQuery(batches).onComplete(_ => ended(application))(application.driver.executor)
  }

  private def ended(application: Application): Unit =
    if (wild) world.after(chance.millis(500, 0.1))(restart(application))

  private def restart(application: Application): Unit =
    if (wild && !acting && running.isEmpty) {
      // A paused driver may end on resume without a restart, so this check is repeated.
      if (live.exists(_.driver.isPaused) || model.isToolAtWork) world.after(RestartCheckMillis)(restart(application))
      else beginAgain(application)
    }

  private def beginAgain(application: Application): Unit = {
    val acted = if (user.mayAct) user.act(application, stopAllBut) else Future.unit
    acting = !acted.isCompleted
    acted.onComplete { _ =>
      acting = false
      if (wild) {
        if (!application.isAlive || chance.happens(0.4)) {
          application.crash()
          start()
        } else begin(application)
      }
    }(if (acted.isCompleted) ExecutionContext.parasitic else application.driver.executor)
  }

  /** Crashes all other applications, including the executors of ended ones. */
  private def stopAllBut(survivor: Option[Application]): Unit =
    everStarted.filterNot(survivor.contains).foreach(_.crashAtOnce())

  private def tickLater(): Unit = world.after(chance.millis(700)) {
    if (wild) {
      tick()
      tickLater()
    }
  }

  private def tick(): Unit =
    if (acting) ()
    else if (model.newest + 1 >= config.firstBatch + batches || scheduler.nowMillis > WildMillis) calmDown()
    else {
      if (running.isEmpty && live.forall(_.driver.isPaused) && !model.isToolAtWork && chance.happens(0.2)) start()
      if (live.nonEmpty) wildTick(chance.pick(live))
    }

  private def wildTick(application: Application): Unit = {
    def now(kind: FaultKind): Boolean = faults.strikes(kind, chance)
    val driver = application.driver
    if (now(FaultKind.ExecutorLost)) application.anyExecutor().foreach(application.loseExecutor)
    if (now(FaultKind.ExecutorPaused))
      application.anyExecutor().foreach(e => pauseFor(e.process, chance.millis(3000, 0.1)))
    if (now(FaultKind.Partition)) application.anyExecutor().foreach { e =>
      world.network.partition(e.process, chance.millis(6000))
    }
    if (now(FaultKind.ClockJump)) driver.jumpAhead(chance.between(1, 1800000).toLong)
    if (now(FaultKind.QueryStop)) application.query.foreach(_.stop())
    if (now(FaultKind.DriverPause)) pauseFor(driver, chance.millis(3000, 0.05))
    // No application starts during a tool's deletions, which could hit its entries: the log makes no promise for them.
    def mayBegin = live.size < 2 && !model.isToolAtWork
    if (mayBegin && now(FaultKind.SecondDriver)) start()
    if (mayBegin && now(FaultKind.LongPause)) longPause(driver)
    if (now(FaultKind.LocalFileDamaged)) world.diskOf(chance.below(config.executors)).damage()
    if (chance.happens(faults(FaultKind.EntryDamaged))) damage.entry()
    if (chance.happens(faults(FaultKind.DataFileDamaged))) damage.dataFile()
    if (chance.happens(faults(FaultKind.SnapshotLost))) damage.snapshotFile()
    if (reader.mayPin && now(FaultKind.ReaderPins)) reader.pin()
    if (live.size == 1 && chance.happens(faults(FaultKind.NewestDeleted))) user.deleteNewest(application)
    if (now(FaultKind.DriverCrash)) crash(application)
  }

  private def crash(application: Application): Unit = {
    application.crash()
    acting = false
    if (wild) world.after(chance.millis(500, 0.1))(if (running.isEmpty && wild && !acting) start())
    else world.ending.lost(application)
  }

  private def pauseFor(process: SimProcess, millis: Double): Unit = {
    process.pause()
    world.after(millis)(resume(process))
  }

  private def resume(process: SimProcess): Unit = process.resume(faults.strikes(FaultKind.ClockStands, chance))

  /**
   * Pauses a driver until its successor has committed more batches than Spark retains, including the paused run's next one, but not
   * for so many runs that its fence is deleted.
   */
  private def longPause(process: SimProcess): Unit = {
    val enough = model.newest + config.batchesToRetain + chance.between(1, 4)
    val claims = objects.newestClaim
    batches = math.max(batches, enough + 2 - config.firstBatch)
    process.pause()
    start()
    def look(left: Int): Unit = world.after(1000) {
      val isFencedNoMore = objects.newestClaim - claims > config.constants.limits.fencingRuns - 4
      if (model.newest >= enough) reach.met("pause-outlives-retention")
      if (model.newest >= enough || left == 0 || !wild || isFencedNoMore) resume(process) else look(left - 1)
    }
    look(600)
  }

  private def calmDown(): Unit = {
    verdict.note("The faults end here")
    wild = false
    val left = chance.below(4) match {
      case 0 => Faults.OfAttempts ++ Faults.OfDeletions
      case 1 => Faults.OfAttempts ++ lostMessages
      case _ => Set.empty[FaultKind]
    }
    faults.calmDown(leave = left)
    damage.restoreAll()
    reader.unpin()
    val survivor = running.find(a => !a.driver.isPaused && chance.happens(0.5))
    applications.foreach(a => if (!survivor.contains(a)) a.crash())
    world.ending.begin(survivor)
  }

  /** Each lost message costs an RPC timeout, and a commit can wait for a few of them only. */
  private def lostMessages: Set[FaultKind] =
    if (config.constants.options.commitTimeoutMs < LostMessages * SimNetwork.AskTimeoutMillis) Set.empty
    else Faults.OfMessages

  /** Crashes all processes. */
  def stopAll(): Unit = stopAllBut(None)
}
