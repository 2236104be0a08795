// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import java.io.File
import java.net.URI
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}
import java.util.concurrent.atomic.{AtomicBoolean, LongAdder}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path}

import sparkdstl.testing.{DirectWriteFileSystem, Operation}
import sparkdstl.testing.DirectWriteFileSystem.pause

/**
 * Local files that behave like an object store: an object appears when its stream is closed, a rename is a copy and a
 * deletion, each request is delayed and counted. The transfer of content is delayed as it is read.
 *
 * The first component of a path below the benchmark's directory names the contender that makes the request.
 */
final class DelayedFileSystem extends DirectWriteFileSystem(DelayedFileSystem.Scheme) {
  import DelayedFileSystem._

  override protected def before(operation: Operation, path: Path): Unit = operation match {
    case Operation.Write => () // in `publishing`, which has the size
    case Operation.Rename =>
      request(path, "COPY", 0)
      request(path, "DELETE", 0)
    case Operation.Open => request(path, "GET", 0)
    case Operation.Head => request(path, "HEAD", 0)
    case Operation.List => request(path, "LIST", 0)
    case Operation.Delete => request(path, "DELETE", 0)
    // Object stores have no directories.
    case Operation.MakeDirectory => ()
  }

  override def initialize(name: URI, configuration: Configuration): Unit = {
    super.initialize(name, configuration)
    Option(configuration.get(SpecEntry)).foreach(takeFrom)
  }

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    val stream = super.open(path, bufferSize)
    new FSDataInputStream(new DelayedInputStream(stream, reading(path)))
  }

  override protected def publishing(path: Path, bytes: Long)(publish: => Unit): Unit = {
    request(path, "PUT", bytes)
    publish
  }
}

/** Number and bytes of requests or of objects. */
final case class Asked(count: Long, bytes: Long) {
  def +(other: Asked): Asked = Asked(count + other.count, bytes + other.bytes)
  def -(other: Asked): Asked = Asked(count - other.count, bytes - other.bytes)
}

object Asked {
  val None: Asked = Asked(0, 0)
}

object DelayedFileSystem {
  val Scheme = "delayed"

  /** The configuration entry that makes Hadoop find this file system. */
  val entry: (String, String) = s"fs.$Scheme.impl" -> classOf[DelayedFileSystem].getName

  /** The configuration entry with a specification, a local file: executors read root and delays from it. */
  val SpecEntry: String = s"fs.$Scheme.spec"

  private final class Counter {
    val count = new LongAdder
    val bytes = new LongAdder
    def asked: Asked = Asked(count.sum, bytes.sum)
  }

  private val counts = new ConcurrentHashMap[(String, String, String), Counter]
  @volatile private var paths = Option.empty[ConcurrentLinkedQueue[(String, String)]]
  private val sequences = new ConcurrentHashMap[String, RequestDelays.Sequence]
  @volatile private var delays: Option[RequestDelays] = None
  @volatile private var directory = "/"
  @volatile private var network = Option.empty[Line]
  private val taken = new AtomicBoolean
  @volatile private var stalledUntilNanos = Option.empty[Long]

  /** The directory below which contenders have theirs. */
  def setRoot(root: String): Unit = directory = root.stripSuffix("/") + "/"

  /** Delays requests that begin from now on, from the first of the sequence on; not at all if `None`. */
  def delayFromNow(requestDelays: Option[RequestDelays]): Unit = {
    sequences.clear()
    network = requestDelays.map(of => new Line(of.networkBytesPerSecond, System.nanoTime()))
    delays = requestDelays
  }

  /** Reads root and delays in an executor, when it makes its first file system. */
  private def takeFrom(spec: String): Unit = if (taken.compareAndSet(false, true)) {
    val storage = Json.read[StorageSpec](new File(spec))
    setRoot(storage.root)
    delayFromNow(storage.delays)
  }

  /** Answers no request for that long. */
  def stall(millis: Long): Unit = stalledUntilNanos = Some(System.nanoTime() + millis * 1000000L)

  /** Numbers of requests since the start, by contender, request and kind of file. */
  def requests: Map[(String, String, String), Asked] = counts.asScala.view.mapValues(_.asked).toMap

  /** Those of one contender, by request and kind of file. */
  def requestsOf(contender: String): Map[(String, String), Asked] = requests.collect {
    case ((`contender`, request, file), asked) => (request, file) -> asked
  }

  /** Records the paths of requests from now on; drops those recorded before. */
  def trace(): Unit = paths = Some(new ConcurrentLinkedQueue)

  /** A contender's requests since [[trace]], in order. */
  def traced(contender: String): Seq[String] =
    paths.toSeq.flatMap(_.asScala).collect { case (`contender`, asked) => asked }

  private def request(path: Path, name: String, bytes: Long): Unit = {
    val below = path.toUri.getPath.stripPrefix(directory)
    val contender = contenderOf(below)
    val counter = counterOf(below, name)
    counter.count.increment()
    counter.bytes.add(bytes)
    paths.foreach(_.add(contender -> s"$name $below on ${Thread.currentThread().getName}"))
    val carried = network.filter(_ => bytes > 0).map(_.carry(bytes, System.nanoTime()))
    delays.foreach { all =>
      pause(sequences.computeIfAbsent(contender, _ => all.sequence()).next(bytes))
    }
    carried.foreach(pauseUntil)
    stalledUntilNanos.map(_ - System.nanoTime()).filter(_ > 0).foreach(nanos => pause(nanos / 1000000L + 1))
  }

  /** Counts and delays the content that is read. */
  private def reading(path: Path): Transfer = {
    val counter = counterOf(path.toUri.getPath.stripPrefix(directory), "GET")
    val own = delays.map(of => new Line(of.bytesPerSecond, System.nanoTime()))
    new Transfer((own ++ network).toSeq, bytes => counter.bytes.add(bytes), () => System.nanoTime(), pauseUntil)
  }

  private def counterOf(below: String, name: String): Counter =
    counts.computeIfAbsent((contenderOf(below), name, kindOf(below)), _ => new Counter)

  private def contenderOf(below: String): String = below.takeWhile(_ != '/')

  private def pauseUntil(nanos: Long): Unit = pause(math.round((nanos - System.nanoTime()) / 1e6))

  /** The kind of an object, by its path below the contender's directory, with a slash in front. */
  private[bench] def kindOf(path: String): String =
    if (path.contains("/dstl/data/")) "data file"
    else if (path.contains("/dstl/epochs")) "epoch"
    else if (path.contains(".changelog")) "changelog"
    else if (path.contains("/offsets")) "offsets"
    else if (path.contains("/commits")) "commits"
    else if (path.endsWith(".zip") || path.endsWith(".zip.crc") || path.endsWith(".sst") || path.contains("SSTs"))
      "snapshot"
    else "other"
}
