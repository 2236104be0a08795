// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim

import java.io.{BufferedReader, File, InputStreamReader, PrintWriter}
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong

import scala.collection.immutable.BitSet
import scala.util.control.NonFatal

/** A process that runs worlds with flaws put back. It is killed when a world does not end. */
private final class FlawProcess {
  import FlawProcess._

  private val process = new ProcessBuilder(
    s"${System.getProperty("java.home")}${File.separator}bin${File.separator}java",
    "-Xmx600m",
    "-XX:+UseSerialGC",
    "-XX:CICompilerCount=2",
    "-cp",
    System.getProperty("java.class.path"),
    "sparkdstl.sim.FlawRun"
  ).redirectError(ProcessBuilder.Redirect.INHERIT).start()
  private val in = new BufferedReader(new InputStreamReader(process.getInputStream))
  private val out = new PrintWriter(process.getOutputStream, true)
  private val heard = new AtomicLong(System.nanoTime())
  private val watch = new Thread(() => kill(), "watch")
  watch.setDaemon(true)
  watch.start()

  def isAlive: Boolean = process.isAlive

  /** The results of these seeds without flaws; fails if a seed fails. */
  def survey(from: Long, to: Long): Vector[Surveyed] = {
    out.println(s"$Survey\t$from\t$to")
    (from to to).map { seed =>
      Option(readLine()).map(_.split("\t", -1)) match {
        case Some(Array(At, _, flaws, probes, "")) =>
          Surveyed(seed, BitSet.fromSpecific(split(flaws).map(_.toInt)), split(probes).toSet)
        case other => sys.error(s"seed $seed fails without a flaw: ${other.fold("it does not end")(_.last)}")
      }
    }.toVector
  }

  /** The seed that fails with this flaw, and its violation. */
  def putBack(number: Int, seeds: Vector[Long], probes: Map[String, Long]): (Option[Long], String) = {
    val within = probes.map { case (name, seed) => s"$name=$seed" }
    out.println(Vector(PutBack, number.toString, seeds.mkString(","), within.mkString(",")).mkString("\t"))
    var at = 0L
    var line = readLine()
    while (line != null && line.startsWith(s"$At\t")) {
      at = line.drop(At.length + 1).toLong
      line = readLine()
    }
    Option(line).map(_.split("\t", 2)) match {
      case Some(Array(NotFound, _)) => None -> ""
      case Some(Array(seed, why)) => Some(seed.toLong) -> why
      case _ =>
        process.waitFor(): Unit
        Some(at) -> "a world does not end"
    }
  }

  def end(): Unit = out.close()

  private def readLine(): String = {
    heard.set(System.nanoTime())
    in.readLine()
  }

  private def kill(): Unit = {
    while (isAlive && System.nanoTime() - heard.get < TimeUnit.MILLISECONDS.toNanos(SilenceMillis)) Thread.sleep(1000)
    process.destroyForcibly(): Unit
  }
}

private object FlawProcess {
  private val SilenceMillis = 120000L

  // The first words of the lines between the two processes.
  val Survey = "survey"
  val PutBack = "put back"
  val At = "at"
  val NotFound = "none"

  def split(list: String): Vector[String] = list.split(',').filter(_.nonEmpty).toVector
}

/** Reads commands from the parent process and writes the result of each world. */
object FlawRun {
  import FlawProcess._

  private val Shown = 150

  def main(arguments: Array[String]): Unit = {
    val in = new BufferedReader(new InputStreamReader(System.in))
    Iterator.continually(in.readLine()).takeWhile(_ != null).map(_.split("\t", -1)).foreach {
      case Array(Survey, from, to) => (from.toLong to to.toLong).foreach(survey)
      case Array(PutBack, number, seeds, probes) =>
        val within = split(probes).map(_.split('=')).map(of => of(0) -> of(1).toLong)
        println(Flaw.putBack(number.toInt)(firstFailure(split(seeds).map(_.toLong), within)).getOrElse(s"$NotFound\t"))
      case other => sys.error(s"cannot do ${other.mkString(" ")}")
    }
  }

  private def survey(seed: Long): Unit = {
    val ((violation, probes), flaws) = Flaw.met(run(seed))
    println(Vector(At, seed.toString, flaws.mkString(","), probes.mkString(","), violation.mkString).mkString("\t"))
  }

  private def firstFailure(seeds: Vector[Long], probes: Seq[(String, Long)]): Option[String] = {
    var silent = probes
    seeds.iterator.flatMap { seed =>
      println(s"$At\t$seed")
      val (violation, met) = run(seed)
      silent = silent.filterNot(of => met(of._1))
      violation.orElse(
        silent.collectFirst { case (probe, within) if seed >= within => s"$probe does not happen any more" }
      ).map(why => s"$seed\t$why")
    }.nextOption()
  }

  /** The first line of a world's violation, and the probes that fired. */
  private def run(seed: Long): (Option[String], Set[String]) = {
    def shown(problem: String) = problem.linesIterator.nextOption().getOrElse("").take(Shown)
    try {
      val result = Seeds.run(seed)
      (result.violation.map(shown), result.reached.keySet)
    } catch {
      case error @ (NonFatal(_) | _: StackOverflowError) => (Some(shown(s"the world ends with $error")), Set.empty)
    }
  }
}
