package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.concurrent.Executor
import java.util.concurrent.atomic.AtomicLong

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.format._
import sparkdstl.log.retry.UploadMetrics
import sparkdstl.log.storage.{LogStorage, MemoryLogStorage}
import sparkdstl.log.upload.ObjectDiscarder

/** Runs on a checkpoint in memory, and what they are made to do. */
trait RunFixture {
  protected val root = new Path("memory:/checkpoint")
  protected val base = new Path(root, "dstl")
  protected val entryText = "v1\n{\"nextBatchWatermarkMs\":0}"

  protected def newStorage: MemoryLogStorage = {
    val ticks = new AtomicLong
    new MemoryLogStorage(() => ticks.incrementAndGet())
  }

  protected def entry(batch: Long): Path = new Path(root, s"commits/$batch")

  protected def key(partition: Int, version: Long, id: Option[String] = None): SegmentKey =
    SegmentKey(0, partition, "", version, id, SegmentKind.Changelog)

  protected def paths(storage: LogStorage): QueryPaths = QueryPaths(root, base, None, storage, storage)

  /** A run that begins now: it reads what is committed. */
  protected def coordinator(
      storage: LogStorage,
      host: String = "host",
      options: LogOptions = LogOptions.default,
      background: Executor = _.run()
  ): RunCoordinator = {
    val services = Services.of(options)
    val result = new RunCoordinator(
      paths(storage),
      options,
      Writer(UUID.randomUUID(), host, "application"),
      services.writes,
      new ObjectDiscarder(storage, background, new UploadMetrics),
      background,
      new ExecutorDirectory,
      CommittedBatches.load(root, base, storage, storage),
      () => 0L
    )
    result.start()
    result
  }

  protected def seal(run: RunCoordinator, of: SegmentKey, content: String): SealReply =
    run.seal(SealRequest("1", of, Vector(SealedPart.Inline(content.getBytes(UTF_8)))))

  protected def commit(run: RunCoordinator, batch: Long, text: String = entryText): Unit =
    run.commit(batch, entry(batch), text.getBytes(UTF_8))

  /** The batch logs that are there. */
  protected def logs(storage: LogStorage): Set[(Long, UUID)] =
    storage.list(new Path(base, "batches")).flatMap(o => LogLayout.parseBatchLog(o.path.getName)).toSet
}
