// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import scala.collection.mutable
import scala.concurrent.Promise

import org.apache.hadoop.fs.Path

import sparkdstl.testing.Completed.result
import sparkdstl.log.config.LogOptions
import sparkdstl.log.format.{FormatSamples, SegmentKey}
import sparkdstl.log.request.{RequestFixture, Requests, ScriptedStore, StorageClient}
import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.StorageOperation.ListRecursively
import sparkdstl.log.transport._
import sparkdstl.log.upload._

/** An executor whose driver is the test, which answers each ask. */
class WorkerFixture(maxInFlight: Long = 10000) {
  val timer = new ManualTimer
  val store = new ScriptedStore
  val runtime = TestRuntime(timer)
  val base = new Path("memory:/base")
  val options: LogOptions = LogOptions.default
    .updated(LogOptions.CommitTimeout, 60000L)
    .updated(LogOptions.InlineMaxSegmentSize, 10L)
    .updated(LogOptions.PreemptivePersistThreshold, 20L)
    .updated(LogOptions.PersistSizeThreshold, 1000L)
    .updated(LogOptions.PersistDelay, 5000L)
  val asks: mutable.ArrayBuffer[(ToDriver, Promise[FromDriver])] = mutable.ArrayBuffer.empty

  /** The immediate answers of the driver; other asks wait for [[answer]]. */
  var answers: PartialFunction[ToDriver, FromDriver] = PartialFunction.empty

  val link: DriverLink = (_, _, message) => {
    val promise = Promise[FromDriver]()
    asks += message -> promise
    answers.lift(message).foreach(promise.success)
    promise.future
  }

  private val storage = new StorageClient(store, new Requests(RequestFixture.none, runtime))
  val metrics = new UploadMetrics
  val run: RunId = RunId("memory:/checkpoint", FormatSamples.someRun)
  var uploader: Option[LogUploader] = None

  val worker = new RunWorker(
    run,
    "1",
    link,
    epoch => {
      uploader = Some(makeUploader(epoch, "a"))
      uploader.get
    },
    epoch => makeUploader(epoch, "snapshots"),
    options,
    runtime
  )

  private def makeUploader(epoch: Long, instance: String) = new LogUploader(
    storage,
    base,
    new DataFiles(FormatSamples.writer.copy(epoch = epoch), "1", instance),
    new MemoryBudget(maxInFlight),
    new ObjectDiscarder(storage, runtime, 60000, metrics),
    options,
    runtime,
    metrics
  )

  /** A task on a stage of one partition, which may seal `share` bytes inline. */
  def newTask(attempt: Long = 1, share: Long = 100): TaskWriter = {
    answers = { case ToDriver.Open => FromDriver.Opened(7, 1, share, Map.empty) }
    val writer = result(worker.task(attempt, batch = 0, partitions = 1)).get
    asks.clear()
    writer
  }

  /** Writes a segment of uploaded `chunks` and `length` bytes at its end. */
  def write(task: TaskWriter, partition: Int, length: Int, chunks: Int*): Unit = {
    val segment = task.segment(SegmentKey(0, partition, "", 1, None, sparkdstl.log.format.SegmentKind.Changelog), None)
    chunks.foreach(size => result(segment.add(new Array[Byte](size))))
    task.end(segment, new Array[Byte](length))
  }

  def seals: Seq[ToDriver.Seal] = asks.collect { case (seal: ToDriver.Seal, _) => seal }.toSeq

  def withdrawals: Int = asks.count(_._1.isInstanceOf[ToDriver.Withdraw])

  def told: Seq[(Long, Either[String, sparkdstl.log.format.SegmentPart])] =
    asks.collect { case (ToDriver.Uploaded(results), _) => results }.flatten.toSeq

  def answer(message: FromDriver): Unit = asks.last._2.success(message): Unit

  def stayAway(): Unit = asks.last._2.failure(new java.io.IOException("no answer")): Unit

  def objects: Set[String] =
    result(store.memory.begin(ListRecursively(base)).result).map(_.path.getName).toSet
}
