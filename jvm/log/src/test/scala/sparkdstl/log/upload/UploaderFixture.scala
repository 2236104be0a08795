package sparkdstl.log.upload

import java.util.concurrent.Executors

import scala.concurrent.{Await, Future}
import scala.concurrent.duration.DurationInt

import org.apache.hadoop.fs.Path

import sparkdstl.log.retry.{ManualExecutor, ManualTimer, RetryPolicy, RetryingExecutor, UploadMetrics}
import sparkdstl.log.storage.{FaultyStorage, MemoryLogStorage, StorageErrors}

/** An uploader over storage that behaves as `behaviour` says for each put. Deletions are made when the test says so. */
final class UploaderFixture(
    behaviour: (Int, Path) => FaultyStorage.Behaviour = (_, _) => FaultyStorage.Work,
    persistSizeThreshold: Long = 1000,
    maxInFlight: Long = 10000,
    numThreads: Int = 2,
    encoder: ChunkFileEncoder[TestChunk] = TestChunk.Encoder
) extends AutoCloseable {

  private val threads = Executors.newCachedThreadPool()
  val base = new Path("memory:/base")
  val storage = new FaultyStorage(new MemoryLogStorage(() => 0L), behaviour)
  val timer = new ManualTimer
  val metrics = new UploadMetrics
  val deletions = new ManualExecutor
  private val policy = RetryPolicy.Hedged(maxAttempts = 3, timeoutMillis = 1000, nextAttemptDelayMillis = 500)
  val executor =
    new RetryingExecutor(policy, numThreads, timer, threads, StorageErrors.isRetryable, () => 0.5, metrics)

  val uploader = new LogUploader[TestChunk](
    storage,
    base,
    (file, attempt) => s"files/$file-$attempt.log",
    encoder,
    executor,
    new ObjectDiscarder(storage, deletions, metrics),
    UploaderOptions(persistSizeThreshold, maxInFlight),
    timer,
    metrics
  )

  def put(label: String, size: Int = 10): PendingChunk = uploader.put(TestChunk.of(label, size))

  /** Names of all objects in storage, once pending deletions were made. */
  def objects: Set[String] = {
    deletions.runAll()
    storage.listRecursively(base).map(_.path.getName).toSet
  }

  /** Where the chunk is; its bytes there were compared. */
  def located(label: String, size: Int, pending: PendingChunk): ChunkLocation = {
    val location = UploaderFixture.result(pending.location)
    val bytes = storage.readRange(new Path(base, location.file), location.offset, location.length)
    assert(bytes sameElements TestChunk.of(label, size).bytes, s"$label at $location")
    assert(location.crc == TestChunk.crcOf(bytes), s"$label at $location")
    location
  }

  override def close(): Unit = {
    uploader.close()
    executor.close()
  }
}

object UploaderFixture {
  def result[T](future: Future[T]): T = Await.result(future, 1.minute)

  def failure(future: Future[_]): Throwable = Await.ready(future, 1.minute).value.get.failed.get
}
