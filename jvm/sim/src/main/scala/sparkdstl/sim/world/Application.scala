package sparkdstl.sim.world

import java.util.UUID

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Try}

import sparkdstl.log.transport.{DriverLink, ExecutorLink, FromDriver, RunId, ToDriver, ToExecutor}
import sparkdstl.sim.model.Names
import sparkdstl.sim.spark._

/** A Spark application: a driver process, its executors, and one run of the query after another. */
final class Application(val name: String, world: World) extends TaskLauncher {
  import world.{chance, config, faults, verdict}

  val driver: SimProcess = world.newProcess(s"$name/driver")
  private val context = world.contextOf(driver, world.diskOf(config.executors))
  private val files = new SparkFiles(context.storage, driver.timer)(driver.inline)
  private implicit val executor: ExecutionContext = driver.executor
  private val executors = mutable.ArrayBuffer.empty[SparkExecutor]
  private val runs = mutable.Map.empty[UUID, SparkQuery]
  private val pending = mutable.Map.empty[Long, (SparkExecutor, Try[TaskResult] => Unit)]
  private var current: Option[SparkQuery] = None
  private var last: Option[SparkQuery] = None
  private var attempts = 0L
  private var executorNumber = 0
  private var runNumber = 0
  private var begunAt = 0L

  /** The query that runs now, if one does. */
  def query: Option[SparkQuery] = current

  /** When the newest run began. */
  def queryBeganNanos: Long = begunAt

  /** The newest run, ended or not. */
  def lastQuery: Option[SparkQuery] = last

  def isAlive: Boolean = !driver.isCrashed

  /** Starts a run; the future tells how it ended, always with an error. */
  def startQuery(): Future[Unit] = {
    while (executors.size < config.executors) addExecutor()
    last.foreach(old => executors.foreach(e => world.network.deliver(e.process)(e.closeLog(old.run))))
    runNumber += 1
    begunAt = world.scheduler.nowNanos
    val id = RunId(Names.Root, chance.nextUuid())
    val log = world.wiring.driver(context, id, executorLink)
    val started = new SparkQuery(
      s"$name run $runNumber",
      id.run,
      config,
      faults,
      chance,
      world.model,
      verdict,
      driver,
      files,
      log,
      this,
      new world.WatchOf(driver, name)
    )
    verdict.note(s"${started.name} begins (${id.run})")
    runs(id.run) = started
    current = Some(started)
    last = Some(started)
    val ended = started.start()
    ended.onComplete(_ => if (current.contains(started)) current = None)
    ended
  }

  /** Ends everything of it; executors go on for a while, until they notice. */
  def crash(): Unit = {
    driver.crash()
    current = None
    executors.foreach(e => world.after(20000 * chance.nextDouble() * chance.nextDouble())(e.process.crash()))
  }

  def crashAtOnce(): Unit = {
    driver.crash()
    current = None
    executors.foreach(_.process.crash())
  }

  def anyExecutor(): Option[SparkExecutor] =
    if (executors.isEmpty) None else Some(chance.pick(executors.toVector))

  def loseExecutor(lost: SparkExecutor): Unit = {
    lost.process.crash()
    later(chance.millis(300, 0.1)) {
      if (executors.contains(lost)) {
        executors -= lost
        addExecutor()
        current.foreach(_.log.executorLost(lost.name))
        pending.filter(_._2._1 eq lost).keys.toVector.sorted.foreach(ended(_, Failure(new ExecutorLost(lost.name))))
      }
    }
  }

  override def nextAttempt(): Long = {
    attempts += 1
    attempts
  }

  override def launch(task: TaskAttempt)(result: Try[TaskResult] => Unit): SparkExecutor = {
    val chosen = chance.pick(executors.toVector)
    verdict.note(s"$name runs attempt ${task.attempt} of batch ${task.batch}/${task.partition} on ${chosen.name}")
    pending(task.attempt) = (chosen, result)
    world.network.deliver(chosen.process) {
      chosen.run(task).onComplete { r =>
        world.network.deliver(driver)(ended(task.attempt, r))
      }(chosen.process.inline)
    }
    if (chosen.process.isCrashed) loseExecutor(chosen)
    chosen
  }

  override def kill(executor: SparkExecutor, attempt: Long): Unit =
    world.network.deliver(executor.process)(executor.kill(attempt))

  override def speculationDelay(): Option[Double] =
    if (chance.happens(faults(FaultKind.Speculation))) Some(60 * chance.nextDouble()) else None

  override def killsOutright(): Boolean = chance.happens(faults(FaultKind.KilledTask))

  override def mustRecompute(): Boolean = chance.happens(faults(FaultKind.Recompute))

  override def later(millis: Double)(action: => Unit): Unit = {
    val _ = driver.after(millis)(action)
  }

  private def ended(attempt: Long, result: Try[TaskResult]): Unit =
    pending.remove(attempt).foreach { case (_, tell) => tell(result) }

  private def addExecutor(): Unit = {
    executorNumber += 1
    val id = s"$executorNumber"
    val process = world.newProcess(s"$name/executor-$id")
    val own = world.contextOf(process, world.diskOf(executorNumber % config.executors))
    lazy val added: SparkExecutor = new SparkExecutor(
      id,
      name,
      process,
      world.executorSetting,
      new SparkFiles(own.storage, process.timer)(process.inline),
      (self, run) =>
        world.wiring.executor(own, id, RunId(Names.Root, run), driverLink(process), self.drop(run, _, _))
    )
    executors += added
    process.onKill(() => if (executors.contains(added)) loseExecutor(added))
    maintainNowAndThen(added)
  }

  private def maintainNowAndThen(executor: SparkExecutor): Unit = {
    val _ = executor.process.after(chance.millis(2500, 0)) {
      executor.maintain().onComplete(_ => maintainNowAndThen(executor))(executor.process.executor)
    }
  }

  private def driverLink(from: SimProcess): DriverLink = new DriverLink {
    override def ask(executor: String, run: RunId, message: ToDriver): Future[FromDriver] =
      world.network.ask(from, driver) {
        runs.get(run.run).fold(Future.successful[FromDriver](FromDriver.NotCoordinated))(
          _.log.handle(executor, message)
        )
      }
  }

  private val executorLink: ExecutorLink = new ExecutorLink {
    override def tell(executor: String, run: RunId, message: ToExecutor): Future[Unit] =
      executors.find(_.name == executor) match {
        case Some(to) =>
          world.network.ask(driver, to.process)(to.knownLog(run.run).fold(Future.unit)(_.handle(message)))
        case None => Promise.failed[Unit](new java.io.IOException(s"no executor $executor")).future
      }
  }
}
