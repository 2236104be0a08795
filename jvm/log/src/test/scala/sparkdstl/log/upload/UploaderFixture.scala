package sparkdstl.log.upload

import scala.concurrent.Future

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.RetryPolicyName
import sparkdstl.log.request.{RequestOptions, Requests, ScriptedStore, StorageClient}
import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.StorageOperation.{ListRecursively, ReadRange}

/** An uploader over storage that behaves as scripted. */
final class UploaderFixture(
    persistSizeThreshold: Long = 1000,
    maxInFlight: Long = 10000,
    encoder: ChunkFileEncoder[TestChunk] = TestChunk.Encoder
) {
  val base = new Path("memory:/base")
  val store = new ScriptedStore
  val timer = new ManualTimer
  val metrics = new UploadMetrics
  val budget = new MemoryBudget(maxInFlight)
  private val runtime = TestRuntime(timer)
  private val options = RequestOptions(RetryPolicyName.Hedged, 1000, 3, 500)
  val requests: Requests = Requests(options, runtime)
  private val storage = new StorageClient(store, requests)
  val discarder = new ObjectDiscarder(storage, runtime, timeoutMillis = 1000, metrics)
  val uploader: LogUploader[TestChunk] = newUploader("files")

  /** Another on the same budget. */
  def newUploader(directory: String): LogUploader[TestChunk] = new LogUploader[TestChunk](
    storage,
    base,
    file => s"$directory/$file.log",
    encoder,
    budget,
    discarder,
    UploaderOptions(persistSizeThreshold, persistDelayMillis = 5000, timeoutMillis = 60000),
    runtime,
    metrics
  )

  def tryPut(label: String, size: Int = 10): Future[PendingChunk] = uploader.put(TestChunk.of(label, size))

  def put(label: String, size: Int = 10): PendingChunk = UploaderFixture.result(tryPut(label, size))

  /** Path of the first uploader's file of that number. */
  def file(number: Int): Path = new Path(base, s"files/$number.log")

  /** Names of all objects in storage. */
  def objects: Set[String] =
    UploaderFixture.result(store.memory.begin(ListRecursively(base)).result).map(_.path.getName).toSet

  /** Where the chunk is; its bytes there were compared. */
  def located(label: String, size: Int, pending: PendingChunk): ChunkLocation = {
    val location = UploaderFixture.result(pending.location)
    val read = store.memory.begin(ReadRange(new Path(base, location.file), location.offset, location.length))
    val bytes = UploaderFixture.result(read.result).get
    assert(bytes sameElements TestChunk.of(label, size).bytes, s"$label at $location")
    assert(location.crc == TestChunk.crcOf(bytes), s"$label at $location")
    location
  }
}

object UploaderFixture {

  /** Of a future that must have been completed. */
  def result[T](future: Future[T]): T =
    future.value.getOrElse(throw new AssertionError("has not ended")).get

  def failure(future: Future[_]): Throwable =
    future.value.getOrElse(throw new AssertionError("has not ended")).failed.get
}
