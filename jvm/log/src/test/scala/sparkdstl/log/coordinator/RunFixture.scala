// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.testing.Completed.result
import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.attempts.InlineBudget
import sparkdstl.log.format._
import sparkdstl.log.read.{EntryReader, LoadedEntry}
import sparkdstl.log.request.{QueryStorage, RequestFixture, Requests, ScriptedStore, StorageClient}
import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.{ObjectStore, Payload}
import sparkdstl.log.storage.StorageOperation.{ListObjects, Put, Read, Replace}
import sparkdstl.log.transport._

/** A driver with scripted storage, and executors that record messages and send none. */
class RunFixture(
    seenStore: ObjectStore => ObjectStore = identity,
    val budget: InlineBudget = new InlineBudget(1000)
) {
  val store = new ScriptedStore
  val timer = new ManualTimer
  val root = new Path("memory:/checkpoint")
  val location: QueryLocation = QueryLocation(root, new Path(root, "dstl"), None)
  val runtime = TestRuntime(timer)
  val options: LogOptions = LogOptions.default.updated(LogOptions.CommitTimeout, 60000L)
  val storage: QueryStorage = storageOf(seenStore(store))
  val entries = new EntryReader(storage, 1 << 20)
  val told: mutable.ArrayBuffer[(String, ToExecutor)] = mutable.ArrayBuffer.empty
  var tell: () => Future[Unit] = () => Future.unit
  private val link: ExecutorLink = (executor, _, message) => {
    told += executor -> message
    tell()
  }

  val metrics = new CommitMetrics

  def begin(run: UUID = FormatSamples.someRun): RunCoordinator = result(tryToBegin(run))

  def tryToBegin(run: UUID = FormatSamples.someRun): Future[RunCoordinator] =
    RunFactory.begin(storage, RunSetup(run, "host", "application", 1, options), DriverResources(link, budget, metrics))
      .map(_.coordinator)(ExecutionContext.parasitic)

  def answer(run: RunCoordinator, message: ToDriver): FromDriver = result(run.answer("1", message))

  /** Commits a batch with one segment. */
  def commit(run: RunCoordinator, batch: Long, attempt: Long = 1, part: SealedPart = RunFixture.inline(1)): Unit = {
    val sealing = answer(run, RunFixture.seal(attempt, batch, 0, part))
    assert(sealing.isInstanceOf[FromDriver.Accepted])
    result(run.commit(batch, RunFixture.content, Seq(attempt)))
  }

  /** The entry of a batch, read past the scripts. */
  def entry(batch: Long): Option[LoadedEntry] =
    result(new EntryReader(storageOf(store.memory), 1 << 20).read(batch)).logged

  private def storageOf(of: ObjectStore): QueryStorage = {
    val client = new StorageClient(of, new Requests(RequestFixture.none, runtime))
    QueryStorage(location, client, client, 60000)
  }

  def idOf(batch: Long): Option[UUID] = entry(batch).flatMap(_.index.link).map(_.entry)

  def batches: Seq[Long] =
    result(store.memory.begin(ListObjects(location.commits)).result).map(_.path.getName.toLong).sorted

  def put(file: String): Unit = store.memory.begin(Put(location.file(file), Payload(Array[Byte](1)))): Unit

  def has(file: String): Boolean = store.memory.begin(Read(location.file(file), 1000)).result.value.get.isSuccess

  /** Flips a bit in the index of an entry. */
  def damage(batch: Long): Unit = {
    val content = store.memory.begin(Read(location.entry(batch), 1 << 20)).result.value.get.get.get
    content(content.length - 20) = (content(content.length - 20) ^ 1).toByte
    store.memory.begin(Replace(location.entry(batch), Payload(content))): Unit
  }

  /** Writes an entry as another run does. */
  def writeEntry(batch: Long, run: UUID, epoch: Long, previous: Option[UUID], segments: CommittedSegment*): UUID =
    writeEntryNaming(Vector.empty, batch, run, epoch, previous, segments: _*)

  /** Writes an entry as another run does, after batches whose entries hold snapshots of the first store. */
  def writeEntryNaming(
      snapshots: Vector[Long],
      batch: Long,
      run: UUID,
      epoch: Long,
      previous: Option[UUID],
      segments: CommittedSegment*
  ): UUID = {
    val link = EntryLink(UUID.nameUUIDFromBytes(s"$run $batch".getBytes(UTF_8)), previous)
    val writer = Writer(run, epoch, "other", "application")
    val own = segments.filter(_.key.kind == SegmentKind.Snapshot)
      .map(of => HeldSnapshot(of.key, batch, of.parts.flatMap(_.toOption).flatMap(_.file)))
    val before = snapshots.map(of => HeldSnapshot(RunFixture.key(of, 0, SegmentKind.Snapshot), of, Vector.empty))
    val list = SnapshotList(batch, 0, before ++ own)
    val entry = CommitEntry.encode(RunFixture.content, batch, link, writer, None, segments.toVector, Some(list))
    store.memory.begin(Replace(location.entry(batch), entry.payload)): Unit
    link.entry
  }
}

/** A fixture with a run that has begun. */
class RunningFixture extends RunFixture {
  val run: RunCoordinator = begin()

  def answer(message: ToDriver): FromDriver = answer(run, message)

  def commit(batch: Long): Unit = commit(run, batch)
}

object RunFixture {
  val content: Array[Byte] = "v1\n{\"nextBatchWatermarkMs\":0}".getBytes(UTF_8)
  val otherRun: UUID = UUID.fromString("99999999-9999-4999-8999-999999999999")

  def key(batch: Long, partition: Int = 0, kind: SegmentKind = SegmentKind.Changelog): SegmentKey =
    SegmentKey(0, partition, "", batch + 1, None, kind)

  def inline(bytes: Int*): SealedPart = SealedPart.Inline(bytes.map(_.toByte).toArray)

  def file(sequence: Long, epoch: Long = 1, run: UUID = FormatSamples.someRun): String =
    LogLayout.dataFile(epoch, run, "1", sequence, "a")

  def part(sequence: Long): SegmentPart = SegmentPart(Some(file(sequence)), 24, 10, 0)

  /** A finished snapshot with one SST file in each of these data files. */
  def snapshot(version: Long, files: Seq[String] = Nil, partition: Int = 0, bytes: Int = 1): Vector[SealedSegment] = {
    val zip = SegmentKey(0, partition, "", version, None, SegmentKind.Snapshot)
    val parts = files.map { file =>
      val key = zip.copy(qualifier = Some(s"000001-$file".replace('/', '-')), kind = SegmentKind.SnapshotFile)
      SealedSegment(key, None, Vector(SealedPart.Stored(SegmentPart(Some(file), 24, 1, 0))))
    }
    SealedSegment(zip, None, Vector(SealedPart.Inline(new Array[Byte](bytes)))) +: parts.toVector
  }

  def segment(key: SegmentKey, parts: SealedPart*): SealedSegment = SealedSegment(key, None, parts.toVector)

  def seal(attempt: Long, batch: Long, partition: Int, parts: SealedPart*): ToDriver.Seal =
    ToDriver.Seal(attempt, batch, Vector(segment(key(batch, partition), parts: _*)))

  def committed(batch: Long, partition: Int = 0): CommittedSegment =
    CommittedSegment(key(batch, partition), 1, Vector(Left(Array[Byte](1))))
}
