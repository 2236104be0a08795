package sparkdstl.sim.world

import scala.collection.mutable
import scala.concurrent.Future

import sparkdstl.sim.model.{Names, ReferenceModel, StorageReader}
import sparkdstl.sim.spark.{ExecutorSetting, LogWiring, ProcessContext, SparkQuery}

/** How a world ended. */
final case class WorldResult(
    config: SimConfig,
    violation: Option[String],
    schedule: Vector[String],
    traceHash: Long,
    steps: Long,
    committed: Long,
    decidable: Boolean
)

/** One world with one seed: all its processes, storage, network, the model, and who makes things go wrong. */
final class World(val config: SimConfig, wiringOf: World => LogWiring, keepSchedule: Boolean) {
  private val MaxSteps = 1000000L
  private val root = new Chance(config.seed)
  val scheduler = new SimScheduler(root.fork("scheduler"))
  val verdict = new Verdict(() => scheduler.nowNanos, keepSchedule)
  val chance: Chance = root.fork("spark")
  val faults = new Faults(config.rates)
  private var processes = 0
  private val wire = newProcess("wire")
  val objects = new ObjectMap(scheduler, verdict)
  val server = new StorageServer(config.storage, objects, newProcess("storage"), root.fork("storage"), faults)
  val network = new SimNetwork(root.fork("network"), faults, wire)
  private val reader = new StorageReader
  val model = new ReferenceModel(config, objects, reader, scheduler, verdict)
  objects.watch(model.changed)
  val wiring: LogWiring = wiringOf(this)
  val executorSetting =
    new ExecutorSetting(config, faults, chance, model, verdict, (path, bytes, by) => objects.publish(path, bytes, by))
  private val disks = mutable.Map.empty[Int, SimDisk]
  private val director = new Director(this, root.fork("director"))

  def newProcess(name: String): SimProcess = {
    processes += 1
    new SimProcess(name, processes, scheduler, root.fork(s"process $processes $name"), verdict)
  }

  /** @param disk of the host that it runs on */
  def contextOf(process: SimProcess, disk: SimDisk): ProcessContext =
    new ProcessContext(
      process.name,
      process.runtime,
      process.inline,
      new SimStorage(server, process),
      new ProcessDisk(disk, process)
    )

  /** The local disk of a host, of which there are as many as an application has executors. */
  def diskOf(host: Int): SimDisk =
    disks.getOrElseUpdate(host, new SimDisk(root.fork(s"disk $host"), faults, verdict))

  /** Does something later, whatever process lives. */
  def after(millis: Double)(action: => Unit): Unit = {
    val _ = wire.after(millis)(action)
  }

  def run(): WorldResult = {
    director.begin()
    while (
      verdict.violation.isEmpty && !model.undecidable && !director.isDone && scheduler.stepCount < MaxSteps &&
      scheduler.step(verdict)
    ) {}
    if (verdict.violation.isEmpty && !model.undecidable && !director.isDone)
      verdict.violate(s"the world does not come to its end: ${scheduler.stepCount} events, ${director.state}")
    WorldResult(
      config,
      verdict.violation,
      verdict.schedule,
      verdict.traceHash,
      scheduler.stepCount,
      model.newest + 1,
      !model.undecidable
    )
  }

  /** Every wait of a process that goes on must end in half an hour: longer than any deadline. */
  final class WatchOf(process: SimProcess, who: String) extends SparkQuery.Watch {
    private val LongestMillis = 30 * 60000.0

    override def apply[T](what: String, wait: Future[T]): Future[T] = {
      val pauses = process.pauseCount
      val _ = wire.after(LongestMillis) {
        if (!wait.isCompleted && !process.isCrashed && process.pauseCount == pauses)
          verdict.violate(s"$who waits for ever for $what")
      }
      wait
    }
  }

  /** What lies about at the quiet end and belongs to nothing any more. */
  def orphans(writtenBeforeNanos: Long): Vector[String] = {
    val all = objects.below(Names.Root, deep = true)
    val named = all.collect {
      case (path, entry) if path.startsWith(Names.Commits + "/") && !ObjectMap.isUnpublished(path) =>
        Names.batchOf(path).fold(Set.empty[String])(reader.namedBy(_, entry))
    }.flatten.toSet
    all.collect {
      case (path, stored)
          if Names.isDataFile(path) && !named(path) && stored.atNanos < writtenBeforeNanos =>
        path
    }
  }
}
