// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.world

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.sim.machines._
import sparkdstl.sim.model.{PlanOracle, ReferenceModel, RetentionOracle, StorageReader}
import sparkdstl.sim.play.{Director, Ending}
import sparkdstl.sim.wiring.ProcessEnvironment

/** The result of a world and the counts of its probes. */
final case class WorldResult(
    config: SimConfig,
    violation: Option[String],
    schedule: Vector[String],
    traceHash: Long,
    steps: Long,
    decidable: Boolean,
    reached: Map[String, Long]
)

/** One world from one seed: its processes, storage, network, reference model and director. */
final class World(val config: SimConfig, keepSchedule: Boolean) {
  private val MaxSteps = 1000000L
  private val LongestWaitMillis = 30 * 60000.0

  private val root = new Chance(config.seed)
  val scheduler = new SimScheduler(root.fork("scheduler"))
  val verdict = new Verdict(() => scheduler.nowNanos, keepSchedule)
  val chance: Chance = root.fork("spark")
  val reach = new Reach
  val faults = new Faults(config.rates, reach)
  private var processes = 0
  private val wire = newProcess("wire")
  val objects = new ObjectMap(scheduler, verdict)
  val server = new StorageServer(
    config.storage,
    objects,
    newProcess("storage"),
    root.fork("storage"),
    faults,
    reach,
    config.constants.latestMillis,
    config.constants.tailLengths
  )
  val network = new SimNetwork(root.fork("network"), faults, wire)
  private val reader = new StorageReader
  val model = new ReferenceModel(config, objects, reader, scheduler, verdict, reach)
  val plans = new PlanOracle(verdict)
  objects.watch { change =>
    model.changed(change)
    plans.changed(change)
  }
  private val disks = mutable.Map.empty[Int, SimDisk]
  private val environments = mutable.ArrayBuffer.empty[ProcessEnvironment]
  val director = new Director(this, root.fork("director"))
  val ending = new Ending(this, root.fork("ending"))

  def newProcess(name: String): SimProcess = {
    processes += 1
    val own = root.fork(s"process $processes $name")
    val process = new SimProcess(name, processes, scheduler, own, verdict)
    if (faults.strikes(FaultKind.ClockDrift, own)) process.drift(own.pick(Vector(0.5, 0.9, 1.1, 2.0)))
    process
  }

  /** @param host the number of the host that it runs on */
  def environmentOf(process: SimProcess, host: Int): ProcessEnvironment = {
    val disk = new ProcessDisk(diskOf(host), process)
    val made = new ProcessEnvironment(
      process,
      new SimStorage(server, process, config.constants.options.uploadMaxAttempts, verdict),
      disk,
      config.constants,
      reach
    )
    environments += made
    made
  }

  /** The local disk of a host. An application has as many hosts as executors. */
  def diskOf(host: Int): SimDisk =
    disks.getOrElseUpdate(host, new SimDisk(root.fork(s"disk $host"), faults, verdict))

  /** Runs `action` later, independent of all processes. */
  def after(millis: Double)(action: => Unit): Unit = wire.after(millis)(action): Unit

  def run(): WorldResult = WorldLogging.during(logged) {
    director.begin()
    while (
      verdict.violation.isEmpty && !model.undecidable && !ending.isDone && scheduler.stepCount < MaxSteps &&
      scheduler.step(verdict)
    ) {}
    if (verdict.violation.isEmpty && !model.undecidable && !ending.isDone)
      verdict.violate(s"the world does not end: ${scheduler.stepCount} events, ${director.state}")
    environments.foreach(_.noteReach())
    WorldResult(
      config,
      verdict.violation,
      verdict.schedule,
      verdict.traceHash,
      scheduler.stepCount,
      !model.undecidable,
      reach.toMap
    )
  }

  private def logged(line: String): Unit = {
    reach.logged(line)
    verdict.note(s"    log: $line")
  }

  /** Checks that each wait of a live process ends within half an hour, which is longer than any deadline. */
  def watch[T](process: SimProcess, what: String, wait: Future[T]): Future[T] = {
    val pauses = process.pauseCount
    if (!wait.isCompleted) {
      val alarm = wire.after(LongestWaitMillis) {
        if (!process.isCrashed && process.pauseCount == pauses)
          verdict.violate(s"${process.name} waits without an end for $what")
      }
      wait.onComplete(_ => alarm.cancel())(ExecutionContext.parasitic)
    }
    wait
  }

  /** @param lostMessages whether answers to executors about their uploads may be lost */
  def oracle(lostMessages: Boolean): RetentionOracle = {
    val isContended = faults.mayStrike(Faults.OfAttempts)
    new RetentionOracle(model, objects, reader, config, reach, isContended, lostMessages)
  }

  /** Resources that live processes hold although no work is under way. */
  def leaks: Vector[String] = environments.iterator.filterNot(_.process.isCrashed).flatMap(_.leaks).toVector
}
