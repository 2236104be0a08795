// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import sparkdstl.sim.world.{FaultKind, Reached, SimConfig, SimConstants, World, WorldResult}

/** Runs worlds from seeds, and shrinks failing worlds. */
object Seeds {

  def run(seed: Long): WorldResult = run(SimConfig.draw(seed), keepSchedule = false)

  def run(config: SimConfig, keepSchedule: Boolean): WorldResult = new World(config, keepSchedule).run()

  /** The first failing seed of `count` seeds from `from` on. */
  def firstFailure(from: Long, count: Int): Option[WorldResult] =
    Iterator.range(0, count).map(i => run(from + i)).find(_.violation.nonEmpty)

  /** The smallest variant of this world that fails in the same way: with fewer kinds of faults, batches and processes. */
  def shrink(result: WorldResult): WorldResult = {
    val failing = result.config
    def kindOf(violation: String): String = violation.replaceAll("[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+", "#").take(80)
    val kind = result.violation.map(kindOf)
    def fails(config: SimConfig): Boolean = run(config, keepSchedule = false).violation.map(kindOf) == kind
    def smaller(config: SimConfig): Iterator[SimConfig] =
      FaultKind.all.iterator.filter(config.rates.contains).map(config.without) ++ Iterator(
        config.copy(constants = SimConstants.Usual),
        config.copy(firstBatch = 0),
        config.copy(shortRuns = false),
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

  /** The seed, the smallest failing world, its violation and the end of its schedule. */
  def report(result: WorldResult, lines: Int, shrinks: Boolean = true): String = {
    val small = if (shrinks) shrink(result) else run(result.config, keepSchedule = true)
    Vector(
      s"FAILED ${result.config}",
      s"  ${result.violation.getOrElse("")}",
      s"smallest world that fails: ${small.config}",
      s"  ${small.violation.getOrElse("")}",
      "the end of its schedule, in milliseconds:",
      small.schedule.takeRight(lines).mkString("\n")
    ).mkString("\n")
  }

  /**
   * The results of many seeds.
   *
   * @param reached the number of worlds in which each probe fired
   */
  final case class Tally(
      seeds: Long,
      failures: Vector[WorldResult],
      steps: Long,
      undecidable: Long,
      reached: Map[String, Reached]
  )

  /**
   * Runs seeds on several threads: each world runs in one thread, and worlds share nothing.
   *
   * @param progress called on any of the threads with the number of finished worlds and the last result
   */
  def runMany(from: Long, count: Long, threads: Int, maxFailures: Int)(
      progress: (Long, WorldResult) => Unit
  ): Tally = {
    val next = new AtomicLong(from)
    val finished = new AtomicLong
    val steps = new AtomicLong
    val undecidable = new AtomicLong
    val failures = mutable.ArrayBuffer.empty[WorldResult]
    val reached = new ConcurrentHashMap[String, Reached]
    def work(): Unit = {
      var seed = next.getAndIncrement()
      while (seed < from + count && failures.synchronized(failures.size < maxFailures)) {
        val result = run(seed)
        steps.addAndGet(result.steps): Unit
        if (!result.decidable) undecidable.incrementAndGet(): Unit
        result.reached.keysIterator.foreach(reached.merge(_, Reached(1, result.config.seed), _ + _): Unit)
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
    Tally(
      finished.get,
      failures.toVector.sortBy(_.config.seed),
      steps.get,
      undecidable.get,
      reached.asScala.toMap
    )
  }
}
