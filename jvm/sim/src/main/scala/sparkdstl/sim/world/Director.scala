package sparkdstl.sim.world

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.sim.model.Names
import sparkdstl.sim.spark.QueryStopped

/** Starts applications, makes what goes wrong with whole processes happen, and in the end lets the world come to rest. */
private[world] final class Director(world: World, chance: Chance) {
  import world.{config, faults, model, scheduler, verdict}

  private val WildMillis = 20 * 60000L
  private val QuietMillis = 60 * 60000L
  private val RestMillis = 15 * 60000.0
  private val RestartCheckMillis = 500.0
  private val MaxQuietEnds = 12

  private val user = new User(world, chance)
  private val shell = world.newProcess("damage")
  private var applications = Vector.empty[Application]
  private var everStarted = Vector.empty[Application]
  private var started = 0
  private var quiet = false
  private var done = false
  private var resting = false
  private var acting = false
  private var quietTarget = 0L
  private var quietSince = 0L
  private var finalRunSince = 0L
  private var quietEnds = 0
  private var lastEnd = ""

  def isDone: Boolean = done

  def state: String =
    s"${if (quiet) "quiet" else "wild"}, ${model.newest + 1} batches committed, last run ended with: $lastEnd"

  def begin(): Unit = {
    start()
    tickLater()
  }

  private def live: Vector[Application] = applications.filter(_.isAlive)

  private def running: Vector[Application] = live.filter(a => a.query.nonEmpty)

  private def start(): Unit = {
    started += 1
    val application = new Application(s"app$started", world)
    applications = live :+ application
    everStarted = everStarted :+ application
    application.driver.onKill(() => crash(application))
    begin(application)
  }

  private def begin(application: Application): Unit = {
    finalRunSince = scheduler.nowNanos
    application.startQuery().onComplete(result => ended(application, result.failed.get))(application.driver.executor)
  }

  private def ended(application: Application, error: Throwable): Unit = {
    lastEnd = error.toString
    if (quiet && !error.isInstanceOf[QueryStopped]) {
      quietEnds += 1
      if (quietEnds > MaxQuietEnds) verdict.violate(s"nothing is wrong, and yet runs keep failing: $error")
    }
    world.after(chance.millis(500, 0.1))(restart(application))
  }

  private def restart(application: Application): Unit =
    if (!resting && !acting && running.isEmpty) {
      // Whoever is paused may be about to end, and then nobody would be left to begin.
      if (live.exists(_.driver.isPaused)) world.after(RestartCheckMillis)(restart(application))
      else beginAgain(application)
    }

  private def beginAgain(application: Application): Unit = {
    val acted = if (!quiet && user.mayAct) user.act(application, () => stopAll()) else Future.unit
    acting = !acted.isCompleted
    acted.onComplete { _ =>
      acting = false
      if (!application.isAlive || chance.happens(0.4)) {
        application.crash()
        start()
      } else begin(application)
    }(if (acted.isCompleted) ExecutionContext.parasitic else application.driver.executor)
  }

  /** Executors of applications that ended long ago included. */
  private def stopAll(): Unit = everStarted.foreach(_.crashAtOnce())

  private def tickLater(): Unit = world.after(chance.millis(700, 0)) {
    tick()
    if (!resting) tickLater()
  }

  private def tick(): Unit =
    if (acting) ()
    else if (quiet) quietTick()
    else if (model.newest + 1 >= config.batches || scheduler.nowMillis > WildMillis) calmDown()
    else {
      if (running.isEmpty && live.forall(_.driver.isPaused) && chance.happens(0.2)) start()
      if (live.nonEmpty) wildTick(chance.pick(live))
    }

  private def wildTick(application: Application): Unit = {
    def now(kind: FaultKind): Boolean = chance.happens(faults(kind))
    val driver = application.driver
    if (now(FaultKind.ExecutorLost)) application.anyExecutor().foreach(application.loseExecutor)
    if (now(FaultKind.ExecutorPaused))
      application.anyExecutor().foreach(e => pauseFor(e.process, chance.millis(3000, 0.1)))
    if (now(FaultKind.Partition)) application.anyExecutor().foreach { e =>
      world.network.partition(e.process, chance.millis(6000, 0))
    }
    if (now(FaultKind.ClockJump)) driver.jumpAhead(chance.between(1, 1800000).toLong)
    if (now(FaultKind.QueryStop)) application.query.foreach(_.stop())
    if (now(FaultKind.DriverPause)) pauseFor(driver, chance.millis(3000, 0.05))
    if (live.size < 2 && now(FaultKind.SecondDriver)) start()
    if (live.size < 2 && now(FaultKind.LongPause)) longPause(driver)
    if (now(FaultKind.LocalFileDamaged)) world.diskOf(chance.below(config.executors)).damage()
    if (now(FaultKind.SnapshotLost)) loseSnapshot()
    if (now(FaultKind.DriverCrash)) crash(application)
  }

  private def crash(application: Application): Unit = {
    application.crash()
    if (acting) {
      // Nobody knows how far the tool came.
      acting = false
      model.undecidable = true
    }
    world.after(chance.millis(500, 0.1))(if (running.isEmpty && !resting && !acting) start())
  }

  /** A file of a snapshot vanishes, or a byte of it is another, where the log promises to survive that. */
  private def loseSnapshot(): Unit = {
    val files = model.snapshotFilesThatMayBeLost
    if (files.nonEmpty) {
      val file = chance.pick(files)
      verdict.note(s"$file is lost")
      model.losesSnapshotFile(file) {
        val bytes = world.objects.get(file).get.bytes
        if (chance.happens(0.5)) world.objects.delete(file, shell)
        else world.objects.publish(file, bytes.map(byte => (byte ^ 1).toByte), shell)
      }
    }
  }

  private def pauseFor(process: SimProcess, millis: Double): Unit = {
    process.pause()
    world.after(millis)(process.resume(clockStood = false))
  }

  /** Paused until its successor's entries have pushed out all that it knew, and the one whose name it was about to take. */
  private def longPause(process: SimProcess): Unit = {
    val next = Names.commit(model.newest + 1)
    val enough = model.newest + config.batchesToRetain + chance.between(1, 4)
    process.pause()
    start()
    def look(left: Int): Unit = world.after(1000) {
      if (model.newest >= enough && !world.objects.contains(next) || left == 0 || quiet)
        process.resume(clockStood = false)
      else look(left - 1)
    }
    look(600)
  }

  private def calmDown(): Unit = {
    verdict.note("From here on nothing goes wrong")
    quiet = true
    faults.calmDown()
    quietSince = scheduler.nowMillis
    quietTarget = model.newest + config.batchesToRetain + 4
    val survivor = running.find(a => !a.driver.isPaused && chance.happens(0.5))
    applications.foreach(a => if (!survivor.contains(a)) a.crash())
    if (survivor.isEmpty) start()
  }

  private def quietTick(): Unit =
    if (resting) ()
    else if (model.newest >= quietTarget) rest()
    else if (scheduler.nowMillis - quietSince > QuietMillis)
      verdict.violate(s"nothing is wrong, and yet no batch is committed: $state")
    else if (running.isEmpty && live.isEmpty) start()

  /** Whatever is under way comes to its end; then nothing may be left that should not be. */
  private def rest(): Unit = {
    resting = true
    // What a run of a higher epoch has left, which lost, waits for the run after this one.
    val lastRunSince = if (running.exists(_.queryBeganNanos < finalRunSince)) 0L else finalRunSince
    world.after(6000)(applications.foreach(_.query.foreach(_.stop())))
    world.after(12000)(stopAll())
    world.after(RestMillis) {
      model.checkAll("at the end")
      val left = world.orphans(lastRunSince)
      if (left.nonEmpty && config.storage.createsExclusively && verdict.violation.isEmpty)
        verdict.violate(s"${left.size} file(s) that nothing needs are left: ${world.objects.story(left.head)}")
      done = true
    }
  }
}
