// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import scala.concurrent.Future

import org.apache.hadoop.fs.Path

import sparkdstl.testing.Completed.result
import sparkdstl.log.config.LogOptions
import sparkdstl.log.format.{FormatSamples, LogFileReader, LogLayout, SegmentPart}
import sparkdstl.log.request.{RequestFixture, Requests, ScriptedStore, StorageClient}
import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.StorageOperation.{ListRecursively, ReadRange}

/** An uploader over scripted storage. */
class UploaderFixture(persistSizeThreshold: Long = 1000, maxInFlight: Long = 10000) {
  val base = new Path("memory:/base")
  val store = new ScriptedStore
  val timer = new ManualTimer
  val metrics = new UploadMetrics
  val budget = new MemoryBudget(maxInFlight)
  private val runtime = TestRuntime(timer)
  private val storage = new StorageClient(store, new Requests(RequestFixture.hedged, runtime))
  val discarder = new ObjectDiscarder(storage, runtime, timeoutMillis = 1000, metrics)
  val uploader: LogUploader = newUploader("a")

  /** Another uploader on the same budget. */
  def newUploader(instance: String): LogUploader = new LogUploader(
    storage,
    base,
    new DataFiles(FormatSamples.writer, "1", instance),
    budget,
    discarder,
    LogOptions.default.updated(LogOptions.PersistSizeThreshold, persistSizeThreshold)
      .updated(LogOptions.PersistDelay, 5000L).updated(LogOptions.CommitTimeout, 60000L),
    runtime,
    metrics
  )

  def tryPut(label: String, size: Int = 10): Future[PendingChunk] = uploader.put(TestChunk.of(label, size))

  def put(label: String, size: Int = 10): PendingChunk = result(tryPut(label, size))

  /** The first uploader's file of that number, relative to the base path. */
  def name(number: Int): String = LogLayout.dataFile(3, FormatSamples.someRun, "1", number.toLong, "a")

  def file(number: Int): Path = new Path(base, name(number))

  /** All objects in storage. */
  def objects: Set[Path] =
    result(store.memory.begin(ListRecursively(base)).result).map(_.path).toSet

  /** The location of the chunk, after its bytes there are compared. */
  def located(label: String, size: Int, pending: PendingChunk): SegmentPart = {
    val part = result(pending.location)
    val path = new Path(base, part.file.get)
    val read = store.memory.begin(ReadRange(path, part.offset, part.length))
    val bytes = result(read.result).get
    val chunk = TestChunk.of(label, size)
    assert(bytes sameElements chunk.bytes, s"$label at $part")
    LogFileReader.verify(path, chunk.key, part, bytes)
    part
  }
}
