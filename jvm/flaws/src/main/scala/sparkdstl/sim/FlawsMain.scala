// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim

import java.util.concurrent.ConcurrentLinkedQueue

import scala.collection.immutable.BitSet
import scala.collection.mutable

/**
 * Puts flaws back one after another, runs seeds until one fails, and prints each flaw with the seed and the violation.
 *
 * First all seeds run without a flaw to find the worlds that each flaw changes; a flaw is put back in these worlds only.
 * A flaw also counts as found when a probe no longer fires, because the simulation's suite checks that.
 *
 * Arguments: the number of seeds, the maximal number of worlds per flaw, the number of processes (0: one per core), and
 * the names of flaws or lists; all if none is named.
 */
object FlawsMain {

  /** The allowed probability that a probe does not fire by chance. */
  private val Unlikely = 1e-6

  private final case class Found(number: Int, worlds: Int, seed: Option[Long], why: String) {
    def flaw: Flaw = FlawTable.flaws(number)
  }

  def main(arguments: Array[String]): Unit = {
    def number(index: Int, default: Int) = arguments.lift(index).fold(default)(_.toInt)
    val (seeds, worlds) = (number(0, 300), number(1, 60))
    val cores = Runtime.getRuntime.availableProcessors
    val processes = Some(number(2, 0)).filter(of => of > 0 && of < cores).getOrElse(cores)
    val names = arguments.drop(3).toSet
    val wanted = FlawTable.flaws.indices.filter { number =>
      val flaw = FlawTable.flaws(number)
      names.isEmpty || names(flaw.name) || names(flaw.list)
    }
    val unknown = names -- FlawTable.flaws.flatMap(flaw => Vector(flaw.name, flaw.list))
    require(unknown.isEmpty, s"no flaw or list is called ${unknown.mkString(", ")}")
    val (there, gone) = wanted.partition(FlawTable.flaws(_).missing.isEmpty)
    val survey = new Survey(surveyed(seeds, processes))
    val results = putBack(there, worlds, processes, survey)
    println(
      s"${results.count(_.seed.nonEmpty)} of ${results.size} flaws were found, each in at most $worlds of $seeds worlds"
    )
    results.filter(_.seed.isEmpty).foreach { of =>
      println(s"not found in ${of.worlds} of ${survey.seedsOf(of.number).size} worlds that it changes: ${of.flaw.name}")
    }
    gone.map(FlawTable.flaws).foreach(of =>
      println(s"its line is not in the log any more: ${of.name}: ${of.missing.mkString}")
    )
    if (gone.nonEmpty) sys.exit(1)
  }

  private def surveyed(seeds: Int, processes: Int): Vector[Surveyed] = {
    val size = 50
    val all = inProcesses(1L to seeds.toLong by size.toLong, processes) { (process, from) =>
      process.survey(from, math.min(seeds.toLong, from + size - 1))
    }(of => println(s"surveyed ${of.last.seed - of.size + 1} to ${of.last.seed} of $seeds seeds"))
    all.flatten.sortBy(_.seed)
  }

  private def putBack(wanted: Seq[Int], worlds: Int, processes: Int, survey: Survey): Vector[Found] = {
    var ended = 0
    inProcesses(wanted, processes) { (process, number) =>
      val seeds = survey.seedsOf(number).take(worlds)
      val (seed, why) = process.putBack(number, seeds, survey.probesWithin(seeds, Unlikely))
      Found(number, seeds.size, seed, why)
    } { found =>
      ended += 1
      val seed = found.seed.fold("-")(_.toString)
      println(f"$ended%3d of ${wanted.size}  ${found.flaw.list}%-12s ${found.flaw.name}%-48s $seed%6s  ${found.why}")
    }
  }

  /** Runs `act` on each of `items` in several processes; `note` receives the results one after another. */
  private def inProcesses[A, B](
      items: Seq[A],
      processes: Int
  )(act: (FlawProcess, A) => B)(note: B => Unit): Vector[B] = {
    val queue = new ConcurrentLinkedQueue[A]
    items.foreach(queue.add(_): Unit)
    val results = mutable.ArrayBuffer.empty[B]
    def work(): Unit = {
      var process = Option.empty[FlawProcess]
      var item = Option(queue.poll())
      while (item.nonEmpty) {
        val running = process.getOrElse(new FlawProcess)
        val result = act(running, item.get)
        process = Option.when(running.isAlive)(running)
        results.synchronized {
          results += result
          note(result)
        }
        item = Option(queue.poll())
      }
      process.foreach(_.end())
    }
    val threads = (1 to processes).map(number => new Thread(() => work(), s"flaws-$number"))
    threads.foreach(_.start())
    threads.foreach(_.join())
    results.toVector
  }
}

/** The flaws that would change a world, and the probes that fire in it without flaws. */
final case class Surveyed(seed: Long, flaws: BitSet, probes: Set[String])

/** The worlds of some seeds, without flaws. */
private final class Survey(worlds: Vector[Surveyed]) {
  private val firing = worlds.flatMap(of => of.probes.map(_ -> of.seed)).groupMap(_._1)(_._2)

  /** The seeds of worlds in which a flaw makes a difference. */
  def seedsOf(flaw: Int): Vector[Long] = worlds.filter(_.flaws(flaw)).map(_.seed)

  /**
   * For each probe the seed up to which it must fire while a flaw is put back in these seeds: that it does not fire by chance has
   * the probability `unlikely`. Probes that fire in worlds which the flaw does not change are left out.
   */
  def probesWithin(seeds: Vector[Long], unlikely: Double): Map[String, Long] = {
    val run = seeds.toSet
    firing.flatMap { case (probe, fired) =>
      val missing = 1 - fired.size.toDouble / worlds.size
      val within = if (missing <= 0) 1L else math.ceil(math.log(unlikely) / math.log(missing)).toLong
      val isTold = seeds.lastOption.exists(_ >= within) && fired.filter(_ <= within).forall(run)
      Option.when(isTold)(probe -> math.max(within, fired.min))
    }
  }
}
