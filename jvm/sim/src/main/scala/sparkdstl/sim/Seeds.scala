package sparkdstl.sim

import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import sparkdstl.sim.spark.LogWiring
import sparkdstl.sim.world.{FaultKind, SimConfig, World, WorldResult}

/** Runs seeds, and makes those that fail small. */
final class Seeds(wiring: World => LogWiring) {

  def run(seed: Long): WorldResult = run(SimConfig.draw(seed), keepSchedule = false)

  def run(config: SimConfig, keepSchedule: Boolean): WorldResult = new World(config, wiring, keepSchedule).run()

  /** The first seed from `from` on that fails, of so many. */
  def firstFailure(from: Long, count: Int): Option[WorldResult] =
    Iterator.range(0, count).map(i => run(from + i)).find(_.violation.nonEmpty)

  /** The smallest world like this one that still goes wrong: with fewer kinds of faults, batches and processes. */
  def shrink(failing: SimConfig): WorldResult = {
    def fails(config: SimConfig): Boolean = run(config, keepSchedule = false).violation.nonEmpty
    def smaller(config: SimConfig): Iterator[SimConfig] =
      FaultKind.all.iterator.filter(config.rates.contains).map(config.without) ++ Iterator(
        config.copy(batches = config.batches / 2),
        config.copy(batches = config.batches - 1),
        config.copy(partitions = 1),
        config.copy(storesPerTask = 1),
        config.copy(executors = 1),
        config.copy(executors = config.executors - 1)
      ).filter(c => c != config && c.batches > 0 && c.executors > 0)
    var smallest = failing
    var next = smaller(smallest).find(fails)
    while (next.nonEmpty) {
      smallest = next.get
      next = smaller(smallest).find(fails)
    }
    run(smallest, keepSchedule = true)
  }

  /** Seed, smallest failing world, what does not hold in it, and its schedule's end. */
  def report(result: WorldResult, lines: Int): String = {
    val small = shrink(result.config)
    Vector(
      s"FAILED ${result.config}",
      s"  ${result.violation.getOrElse("")}",
      s"smallest world that fails: ${small.config}",
      s"  ${small.violation.getOrElse("")}",
      "the end of its schedule, in milliseconds:",
      small.schedule.takeRight(lines).mkString("\n")
    ).mkString("\n")
  }
}

object Seeds {

  /** What came of many seeds. */
  final case class Tally(seeds: Long, failures: Vector[WorldResult], steps: Long, undecidable: Long)

  /**
   * Runs seeds on several threads: a world is one thread's, and worlds share nothing.
   *
   * @param progress
   *   told, on any of the threads, how many have ended, and how the last one did
   */
  def runMany(wiring: World => LogWiring, from: Long, count: Long, threads: Int, maxFailures: Int)(
      progress: (Long, WorldResult) => Unit
  ): Tally = {
    val next = new AtomicLong(from)
    val finished = new AtomicLong
    val steps = new AtomicLong
    val undecidable = new AtomicLong
    val failures = mutable.ArrayBuffer.empty[WorldResult]
    def work(): Unit = {
      val seeds = new Seeds(wiring)
      var seed = next.getAndIncrement()
      while (seed < from + count && failures.synchronized(failures.size < maxFailures)) {
        val result = seeds.run(seed)
        steps.addAndGet(result.steps): Unit
        if (!result.decidable) undecidable.incrementAndGet(): Unit
        if (result.violation.nonEmpty) failures.synchronized(failures += result: Unit)
        progress(finished.incrementAndGet(), result)
        seed = next.getAndIncrement()
      }
    }
    val workers = (1 to threads).map { i =>
      val thread = new Thread(() => work(), s"seeds-$i")
      thread.start()
      thread
    }
    workers.foreach(_.join())
    Tally(finished.get, failures.toVector.sortBy(_.config.seed), steps.get, undecidable.get)
  }
}
