// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.play

import java.util.UUID

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Try}

import sparkdstl.log.transport.{DriverLink, ExecutorLink, FromDriver, RunId, ToDriver, ToExecutor}
import sparkdstl.sim.machines.SimProcess
import sparkdstl.sim.model.Names
import sparkdstl.sim.spark._
import sparkdstl.sim.wiring.{DriverLog, ExecutorLog}
import sparkdstl.sim.world.{Branches, FaultKind, World}

/** A Spark application: a driver process, its executors and consecutive runs of the query. */
final class Application(val name: String, world: World) extends TaskLauncher {
  import world.{chance, config, faults, verdict}

  val driver: SimProcess = world.newProcess(s"$name/driver")
  private val environment = world.environmentOf(driver, config.executors)
  private val files = new SparkFiles(environment.objects, driver.timer)(driver.inline)
  private val executors = mutable.ArrayBuffer.empty[SparkExecutor]
  private val runs = mutable.Map.empty[UUID, SparkQuery]
  private val pending = mutable.Map.empty[Long, (SparkExecutor, Try[TaskResult] => Unit)]
  private val lastRanOn = mutable.Map.empty[Int, SparkExecutor]
  private var current: Option[SparkQuery] = None
  private var last: Option[SparkQuery] = None
  private var attempts = 0L
  private var executorNumber = 0
  private var runNumber = 0

  /** The running query, if any. */
  def query: Option[SparkQuery] = current

  /** The newest run, whether it has ended or not. */
  def lastQuery: Option[SparkQuery] = last

  def isAlive: Boolean = !driver.isCrashed

  /**
   * Starts a run; the future fails with the reason of its end.
   *
   * @param batches the number of batches after which it ends
   * @param lingerMillis the time between its last batch and its end
   */
  def startQuery(batches: Option[Int], lingerMillis: Double = 0): Future[Unit] = {
    while (executors.size < config.executors) addExecutor()
    unloadLast()
    runNumber += 1
    val id = RunId(Names.Root, chance.nextUuid())
    val inlineShare = environment.options.inlineMaxBatchSize / world.config.partitions
    val log = new DriverLog(environment, id, executorLink, inlineShare, world.plans, world.verdict.violate(_))
    val started =
      new SparkQuery(s"$name run $runNumber", id.run, batches, lingerMillis, world, driver, files, log, this)
    verdict.note(s"${started.name} begins (${id.run})")
    runs(id.run) = started
    current = Some(started)
    last = Some(started)
    val ended = started.start()
    ended.onComplete(_ => if (current.contains(started)) current = None)(driver.executor)
    ended
  }

  /** Unloads the stores of the previous run on all executors. */
  def unloadLast(): Unit =
    last.foreach(old => executors.foreach(e => world.network.deliver(e.process)(e.unload(old.run))))

  /** Crashes the driver; the executors crash some time later, as if they had noticed it. */
  def crash(): Unit = {
    crashDriver()
    executors.foreach(e => world.after(20000 * chance.nextDouble() * chance.nextDouble())(e.process.crash()))
  }

  def crashAtOnce(): Unit = {
    crashDriver()
    executors.foreach(_.process.crash())
  }

  private def crashDriver(): Unit = {
    driver.crash()
    world.model.toolCrashed(driver)
    current = None
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

  /** Prefers the executor that has the partition's stores. */
  override def launch(task: TaskAttempt)(result: Try[TaskResult] => Unit): SparkExecutor = {
    val moves = lastRanOn.get(task.partition).forall(!executors.contains(_)) ||
      faults.strikes(FaultKind.StoreMoves, chance)
    if (moves) lastRanOn(task.partition) = chance.pick(executors.toVector)
    val chosen = lastRanOn(task.partition)
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
    if (faults.strikes(FaultKind.Speculation, chance)) Some(60 * chance.nextDouble()) else None

  override def killsOutright(): Boolean = faults.strikes(FaultKind.KilledTask, chance)

  override def mustRecompute(): Boolean = faults.strikes(FaultKind.Recompute, chance)

  override def later(millis: Double)(action: => Unit): Unit = driver.after(millis)(action): Unit

  private def ended(attempt: Long, result: Try[TaskResult]): Unit =
    pending.remove(attempt).foreach { case (_, tell) =>
      result.failed.foreach(world.ending.taskFailed(s"attempt $attempt of $name", _))
      tell(result)
    }

  private def addExecutor(): Unit = {
    executorNumber += 1
    val id = s"$executorNumber"
    val process = world.newProcess(s"$name/executor-$id")
    val own = world.environmentOf(process, executorNumber % config.executors)
    val added = new SparkExecutor(
      id,
      name,
      process,
      world,
      new SparkFiles(own.objects, process.timer)(process.inline),
      run => new ExecutorLog(own, id, RunId(Names.Root, run), driverLink(process))
    )
    executors += added
    process.onKill(() => if (executors.contains(added)) loseExecutor(added))
    maintainNowAndThen(added)
  }

  private def maintainNowAndThen(executor: SparkExecutor): Unit = executor.process.after(chance.millis(2500)) {
    executor.maintain().onComplete(_ => maintainNowAndThen(executor))(executor.process.executor)
  }: Unit

  private def driverLink(from: SimProcess): DriverLink = new DriverLink {
    override def ask(executor: String, run: RunId, message: ToDriver): Future[FromDriver] =
      world.network.ask(from, driver) {
        val answer = runs.get(run.run).fold(Future.successful[FromDriver](FromDriver.NotCoordinated))(
          _.log.handle(executor, message)
        )
        answer.foreach(Branches.of(message, _).foreach(world.reach.met(_)))(ExecutionContext.parasitic)
        answer
      }
  }

  private val executorLink: ExecutorLink = new ExecutorLink {
    override def tell(executor: String, run: RunId, message: ToExecutor): Future[Unit] =
      executors.find(_.name == executor) match {
        case Some(to) =>
          world.reach.met(if (message == ToExecutor.Flush) "executor-asked-to-flush" else "loser-drops-its-state")
          world.network.ask(driver, to.process)(to.knownLog(run.run).fold(Future.unit)(_.handle(message)))
        case None => Promise.failed[Unit](new java.io.IOException(s"no executor $executor")).future
      }
  }
}
