package sparkdstl.sim

import java.io.{BufferedReader, File, InputStreamReader, PrintWriter}
import java.util.concurrent.{ConcurrentLinkedQueue, TimeUnit}
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.util.control.NonFatal

/**
 * Puts flaws back one after another, runs seeds until one fails, and prints which were found, by what, after how many seeds.
 * Arguments: how many seeds for each flaw, how many processes (0: one per core), and the names of flaws or lists; all if none is
 * named.
 */
object FlawsMain {
  private val SilenceMillis = 120000L

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
    val results = run(there, seeds, processes)
    val found = results.count(_.seed.nonEmpty)
    println(s"$found of ${results.size} flaws were found in up to $seeds seeds each")
    results.filter(_.seed.isEmpty).foreach(of => println(s"not found: ${of.flaw.name}: ${of.flaw.sentence}"))
    gone.map(FlawTable.flaws).foreach(of =>
      println(s"its line is not in the log any more: ${of.name}: ${of.missing.mkString}")
    )
    if (gone.nonEmpty) sys.exit(1)
  }

  private def run(wanted: Seq[Int], seeds: Long, processes: Int): Vector[Found] = {
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
      val thread = new Thread(() => work(queue, seeds, note), s"flaws-$number")
      thread.start()
      thread
    }
    threads.foreach(_.join())
    results.toVector
  }

  private def work(queue: ConcurrentLinkedQueue[Int], seeds: Long, note: Found => Unit): Unit = {
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
  def find(number: Int, seeds: Long): (Option[Long], String) = {
    out.println(s"$number $seeds")
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

  def main(arguments: Array[String]): Unit = {
    val in = new BufferedReader(new InputStreamReader(System.in))
    Iterator.continually(in.readLine()).takeWhile(_ != null).foreach { line =>
      val Array(number, seeds) = line.split(' ')
      println(Flaw.putBack(number.toInt)(firstFailure(seeds.toLong)).getOrElse("none\t"))
    }
  }

  private def firstFailure(count: Long): Option[String] =
    Iterator.iterate(1L)(_ + 1).takeWhile(_ <= count).flatMap { seed =>
      println(s"at $seed")
      val violation =
        try Seeds.run(seed).violation
        catch { case error @ (NonFatal(_) | _: StackOverflowError) => Some(s"the world ends with $error") }
      violation.map(why => s"$seed\t${why.linesIterator.nextOption().getOrElse("").take(Shown)}")
    }.nextOption()
}
