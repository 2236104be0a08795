// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import java.io.File
import java.net.URI
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}
import java.util.concurrent.atomic.{AtomicBoolean, AtomicLong, LongAdder}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path}

import sparkdstl.testing.{DirectWriteFileSystem, FileSystemScheme, Operation}
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
    val (lines, counter) = reading(path)
    new FSDataInputStream(new DelayedInputStream(stream, lines, counter))
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
  private val None = Asked(0, 0)

  /** What has been asked since an earlier moment. */
  def since[K](before: Map[K, Asked], now: Map[K, Asked]): Map[K, Asked] =
    now.map { case (kind, asked) => kind -> (asked - before.getOrElse(kind, None)) }
}

object DelayedFileSystem extends FileSystemScheme("delayed", classOf[DelayedFileSystem]) {

  /** The configuration entry with a specification, a local file: executors read root and delays from it. */
  val SpecEntry: String = s"fs.$Scheme.spec"

  private final class Counter {
    val count = new LongAdder
    val bytes = new LongAdder
    def asked: Asked = Asked(count.sum, bytes.sum)
  }

  private val counts = new ConcurrentHashMap[(String, String, String), Counter]
  private val times = new ConcurrentLinkedQueue[TimedRequest]
  // Numbers of delayed requests, by contender.
  private val delayed = new ConcurrentHashMap[String, AtomicLong]
  @volatile private var delays: Option[RequestDelays] = None
  @volatile private var directory = "/"
  @volatile private var network = Option.empty[Line]
  private val taken = new AtomicBoolean

  /** The directory below which contenders have theirs. */
  def setRoot(root: String): Unit = directory = root.stripSuffix("/") + "/"

  /** Delays requests that begin from now on, from the first of the sequence on; not at all if `None`. */
  def delayFromNow(requestDelays: Option[RequestDelays]): Unit = {
    delayed.clear()
    times.clear()
    network = requestDelays.map(of => new Line(of.networkBytesPerSecond, System.nanoTime()))
    delays = requestDelays
  }

  /** Reads root and delays in an executor, when it makes its first file system. */
  private def takeFrom(spec: String): Unit = if (taken.compareAndSet(false, true)) {
    val storage = Json.read[StorageSpec](new File(spec))
    setRoot(storage.root)
    delayFromNow(storage.delays)
  }

  /** The requests that were delayed, by the system's clock. */
  def delayedRequests: Seq[TimedRequest] = times.asScala.toVector

  /** Numbers of requests since the start, by contender, request and kind of file. */
  def requests: Map[(String, String, String), Asked] = counts.asScala.view.mapValues(_.asked).toMap

  /** Those of one contender, by request and kind of file. */
  def requestsOf(contender: String): Map[(String, String), Asked] = requests.collect {
    case ((`contender`, request, file), asked) => (request, file) -> asked
  }

  private def request(path: Path, name: String, bytes: Long): Unit = {
    val below = path.toUri.getPath.stripPrefix(directory)
    val counter = counterOf(below, name)
    counter.count.increment()
    counter.bytes.add(bytes)
    val carried = network.filter(_ => bytes > 0).map(_.carry(bytes, System.nanoTime()))
    delays.foreach { all =>
      val begun = System.currentTimeMillis()
      pause(all.of(delayed.computeIfAbsent(contenderOf(below), _ => new AtomicLong).getAndIncrement(), bytes))
      times.add(TimedRequest(s"$name ${below.dropWhile(_ != '/').drop(1)}", begun, System.currentTimeMillis())): Unit
    }
    carried.foreach(Line.await)
  }

  /** The lines that delay the content that is read, and what counts it. */
  private def reading(path: Path): (Seq[Line], Long => Unit) = {
    val counter = counterOf(path.toUri.getPath.stripPrefix(directory), "GET")
    val own = delays.map(of => new Line(of.bytesPerSecond, System.nanoTime()))
    ((own ++ network).toSeq, counter.bytes.add)
  }

  private def counterOf(below: String, name: String): Counter =
    counts.computeIfAbsent((contenderOf(below), name, kindOf(below)), _ => new Counter)

  private def contenderOf(below: String): String = below.takeWhile(_ != '/')

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
