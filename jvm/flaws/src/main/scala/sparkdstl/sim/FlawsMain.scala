package sparkdstl.sim

import java.io.{BufferedReader, File, InputStreamReader, PrintWriter}
import java.util.concurrent.{ConcurrentLinkedQueue, TimeUnit}
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.util.control.NonFatal

/**
 * Puts flaws back one after another, runs seeds until one fails, and prints which were found, by what, after how many seeds. A flaw
 * also counts as found when a probe does not fire any more, as the suite of the simulation would find it.
 *
 * Arguments: how many seeds for each flaw, how many processes (0: one per core), and the names of flaws or lists; all if none is
 * named.
 */
object FlawsMain {
  private val SilenceMillis = 120000L

  /** How likely it may be that a probe does not fire by chance. */
  private val Unlikely = 1e-6

  private final case class Found(flaw: Flaw, seed: Option[Long], why: String)

  def main(arguments: Array[String]): Unit = {
    val seeds = arguments.headOption.fold(60L)(_.toLong)
    val cores = Runtime.getRuntime.availableProcessors
    val processes = arguments.lift(1).map(_.toInt).filter(of => of > 0 && of < cores).getOrElse(cores)
    val names = arguments.drop(2).toSet
    val wanted = FlawTable.flaws.indices.filter { number =>
      val flaw = FlawTable.flaws(number)
      names.isEmpty || names(flaw.name) || names(flaw.list)
    }
    val unknown = names -- FlawTable.flaws.flatMap(flaw => Vector(flaw.name, flaw.list))
    require(unknown.isEmpty, s"no flaw or list is called ${unknown.mkString(", ")}")
    val (there, gone) = wanted.partition(FlawTable.flaws(_).missing.isEmpty)
    val results = run(there, seeds, processes, probesWithin(seeds, processes))
    val found = results.count(_.seed.nonEmpty)
    println(s"$found of ${results.size} flaws were found in up to $seeds seeds each")
    results.filter(_.seed.isEmpty).foreach(of => println(s"not found: ${of.flaw.name}: ${of.flaw.sentence}"))
    gone.map(FlawTable.flaws).foreach(of =>
      println(s"its line is not in the log any more: ${of.name}: ${of.missing.mkString}")
    )
    if (gone.nonEmpty) sys.exit(1)
  }

  /** By probe, after how many seeds it must have fired, if that is within so many. */
  private def probesWithin(seeds: Long, processes: Int): Map[String, Long] = {
    val tally = Seeds.runMany(1, seeds, processes, 1)((_, _) => ())
    tally.failures.foreach(failure => sys.error(s"seed ${failure.config.seed} fails without a flaw: ${failure.violation.mkString}"))
    tally.reached.view.mapValues { of =>
      val missing = 1 - of.worlds.toDouble / seeds
      if (missing <= 0) of.first else math.max(of.first, math.ceil(math.log(Unlikely) / math.log(missing)).toLong)
    }.filter(_._2 <= seeds).toMap
  }

  private def run(wanted: Seq[Int], seeds: Long, processes: Int, probes: Map[String, Long]): Vector[Found] = {
    val queue = new ConcurrentLinkedQueue[Int]
    wanted.foreach(queue.add(_): Unit)
    val results = mutable.ArrayBuffer.empty[Found]
    def note(found: Found): Unit = results.synchronized {
      results += found
      val seed = found.seed.fold("-")(_.toString)
      println(
        f"${results.size}%3d of ${wanted.size}  ${found.flaw.list}%-12s ${found.flaw.name}%-48s $seed%6s  ${found.why}"
      )
    }
    val threads = (1 to processes).map { number =>
      val thread = new Thread(() => work(queue, s"$seeds${FlawRun.toText(probes)}", note), s"flaws-$number")
      thread.start()
      thread
    }
    threads.foreach(_.join())
    results.toVector
  }

  private def work(queue: ConcurrentLinkedQueue[Int], seeds: String, note: Found => Unit): Unit = {
    var process = Option.empty[FlawProcess]
    var number = Option(queue.poll())
    while (number.nonEmpty) {
      val running = process.getOrElse(new FlawProcess(SilenceMillis))
      val (seed, why) = running.find(number.get, seeds)
      process = Option.when(running.isAlive)(running)
      note(Found(FlawTable.flaws(number.get), seed, why))
      number = Option(queue.poll())
    }
    process.foreach(_.end())
  }
}

/** A process that runs worlds with flaws put back. It is killed when a world does not end. */
private final class FlawProcess(silenceMillis: Long) {
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

  /** The seed that fails with this flaw, and why. */
  def find(number: Int, seeds: String): (Option[Long], String) = {
    out.println(s"$number\t$seeds")
    var at = 1L
    var line = in.readLine()
    while (line != null && line.startsWith("at ")) {
      heard.set(System.nanoTime())
      at = line.drop(3).toLong
      line = in.readLine()
    }
    heard.set(System.nanoTime())
    Option(line).map(_.split("\t", 2)) match {
      case Some(Array("none", _)) => None -> ""
      case Some(Array(seed, why)) => Some(seed.toLong) -> why
      case _ =>
        process.waitFor(): Unit
        Some(at) -> "a world does not end"
    }
  }

  def end(): Unit = out.close()

  private def kill(): Unit = {
    while (isAlive && System.nanoTime() - heard.get < TimeUnit.MILLISECONDS.toNanos(silenceMillis)) Thread.sleep(1000)
    process.destroyForcibly(): Unit
  }
}

/** Reads the numbers of flaws, and writes for each the first seed that fails and why. */
object FlawRun {
  private val Shown = 150

  def toText(probes: Map[String, Long]): String = probes.map { case (name, within) => s"\t$name=$within" }.mkString

  def main(arguments: Array[String]): Unit = {
    val in = new BufferedReader(new InputStreamReader(System.in))
    Iterator.continually(in.readLine()).takeWhile(_ != null).foreach { line =>
      val Array(number, seeds, probes @ _*) = line.split('\t')
      val within = probes.map(of => of.takeWhile(_ != '=') -> of.dropWhile(_ != '=').drop(1).toLong)
      println(Flaw.putBack(number.toInt)(firstFailure(seeds.toLong, within)).getOrElse("none\t"))
    }
  }

  private def firstFailure(count: Long, probes: Seq[(String, Long)]): Option[String] = {
    var silent = probes
    Iterator.iterate(1L)(_ + 1).takeWhile(_ <= count).flatMap { seed =>
      println(s"at $seed")
      val problem =
        try {
          val result = Seeds.run(seed)
          silent = silent.filterNot(of => result.reached.contains(of._1))
          result.violation.orElse(
            silent.collectFirst { case (probe, within) if seed >= within => s"$probe does not happen any more" }
          )
        } catch { case error @ (NonFatal(_) | _: StackOverflowError) => Some(s"the world ends with $error") }
      problem.map(why => s"$seed\t${why.linesIterator.nextOption().getOrElse("").take(Shown)}")
    }.nextOption()
  }
}
