// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.recovery

import sparkdstl.bench.{Asked, DelayedFileSystem, Recorder, RecoverySpec}

import org.apache.spark.sql.streaming.StreamingQueryProgress

/** Runs batches, kills one of two executor processes, and measures the next batch. No snapshots are taken meanwhile. */
private final class Loss(spec: RecoverySpec, query: RestartedQuery, executors: Executors, recorder: Recorder) {

  def run(): Unit = {
    query.configure(SnapshotSettings.Never: _*)
    val done = spec.batchesBefore + spec.batchesSince
    // A single executor would take all stores.
    executors.look(): Unit
    query.from(done) { batches =>
      // The batch that started the query is not like those after it.
      batches.next(): Unit
      val usual = Seq.fill(spec.batchesWarm - 1)(timed(batches)._2)
      val before = executors.look()
      val (lost, process) = before.minBy(_._1)
      val ofDriver = DelayedFileSystem.requests
      executors.kill(process.pid)
      val (progress, millis) = timed(batches)
      RecoveryBench.check(spec, progress, done + spec.batchesWarm)
      val since = Asked.since(ofDriver, DelayedFileSystem.requests) +: executors.look().map { case (id, now) =>
        Asked.since(before.get(id).fold(Executors.NoRequests)(_.requests), now.requests)
      }.toSeq
      println(s"executor $lost was lost")
      recorder.recovery(query.contender, millis, usual)
      recorder.requests(since.flatten.groupMapReduce(_._1)(_._2)(_ + _))
    }
  }

  /** Runs the next batch; returns its progress, and the milliseconds from its input until its end. */
  private def timed(batches: Iterator[StreamingQueryProgress]): (StreamingQueryProgress, Long) = {
    val began = System.nanoTime()
    (batches.next(), (System.nanoTime() - began) / 1000000L)
  }
}
