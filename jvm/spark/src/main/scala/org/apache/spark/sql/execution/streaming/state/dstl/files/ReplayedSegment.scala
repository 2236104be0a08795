package org.apache.spark.sql.execution.streaming.state.dstl.files

import org.apache.hadoop.fs.FSDataInputStream

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.{FoundSegment, SegmentInputStream}

import org.apache.spark.sql.execution.streaming.state.dstl.store.LoadErrors
import org.apache.spark.sql.execution.streaming.state.dstl.worker.{CurrentBatch, WorkedRun}

/** Segments as streams. */
private[dstl] object ReplayedSegment {

  /** The segment, if it is in the log; those that follow are fetched meanwhile, as far as they are committed. */
  def open(run: WorkedRun, key: SegmentKey, ahead: Int): Option[FSDataInputStream] = {
    CurrentBatch.get.foreach { batch =>
      run.reader.prefetch((key.batch + 1) until math.min(key.batch + 1 + ahead, batch))
    }
    run.waiting.on(run.reader.open(key)).map(stream(run, _))
  }

  /** A segment that was found. */
  def stream(run: WorkedRun, found: FoundSegment): FSDataInputStream = {
    val counters = ReplayCounters.current
    val metrics = run.resources.replayMetrics
    metrics.opened()
    if (found.segment.key.kind == SegmentKind.Changelog) CurrentLoad.get.foreach(_.reached(found.segment.key.version))
    counters.segments += 1
    new FSDataInputStream(new SegmentInputStream(
      found.segment.parts.map(_.length),
      index => {
        val bytes = LoadErrors.inFront(run.waiting.on(run.reader.part(found, index)))
        counters.bytes += bytes.length
        metrics.read(bytes.length.toLong)
        bytes
      }
    ))
  }
}

/** What the current thread's task has replayed. */
private[dstl] final class ReplayCounters {
  var segments = 0L
  var bytes = 0L

  /** Change records, whether their changelogs were in the log or plain files. */
  var records = 0L

  def reset(): Unit = {
    segments = 0
    bytes = 0
    records = 0
  }
}

private[dstl] object ReplayCounters {
  private val counters = ThreadLocal.withInitial[ReplayCounters](() => new ReplayCounters)

  def current: ReplayCounters = counters.get()
}
