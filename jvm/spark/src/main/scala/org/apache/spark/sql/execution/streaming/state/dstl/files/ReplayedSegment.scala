// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import org.apache.hadoop.fs.FSDataInputStream

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.{FoundSegment, SegmentInputStream}

import org.apache.spark.sql.execution.streaming.state.dstl.worker.{CurrentBatch, WorkedRun}

/** Segments as streams. */
private[files] object ReplayedSegment {

  /** The segment, if it is in the log; the committed ones after it are fetched ahead. */
  def open(run: WorkedRun, key: SegmentKey, ahead: Int, load: Option[StoreLoad]): Option[FSDataInputStream] = {
    CurrentBatch.get.foreach { batch =>
      run.reader.prefetch((key.batch + 1) until math.min(key.batch + 1 + ahead, batch))
    }
    run.waiting.on(run.reader.open(key)).map(stream(run, _, load))
  }

  /** A segment that was found. */
  def stream(run: WorkedRun, found: FoundSegment, load: Option[StoreLoad]): FSDataInputStream = {
    val key = found.segment.key
    val metrics = run.resources.replayMetrics
    metrics.opened()
    load.foreach { of =>
      of.segments += 1
      if (key.kind == SegmentKind.Changelog) of.progress.foreach(_.reached(key.version))
    }
    new FSDataInputStream(new SegmentInputStream(
      found.segment.parts.map(_.length),
      index => {
        val bytes = LoadErrors.inFront(run.waiting.on(run.reader.part(found, index)))
        load.foreach(_.bytes += bytes.length)
        metrics.read(bytes.length.toLong)
        bytes
      }
    ))
  }
}
