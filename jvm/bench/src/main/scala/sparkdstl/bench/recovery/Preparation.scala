// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.recovery

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

import sparkdstl.bench.RecoverySpec
import sparkdstl.log.format.SegmentKind

import org.apache.spark.sql.execution.streaming.state.dstl.{LoggedBatches, StateStores}

/** Makes a checkpoint whose newest snapshots are of a known version. */
private final class Preparation(spec: RecoverySpec, query: RestartedQuery) {
  import Preparation._
  import SnapshotSettings._

  def run(): Unit = if (query.contender.usesLog) inTheLog() else asFiles()

  /** Snapshots of all stores at once, which the seals of later batches carry into commit entries. */
  private def inTheLog(): Unit = {
    query.configure(Never: _*)
    query.configure(MinDeltas -> "1")
    query.run(0, spec.batchesBefore - 1)
    StateStores.close()
    query.configure(ReplayCost -> "100000")
    var further = 1
    val before = StateStores.uploadedSnapshots
    query.from(spec.batchesBefore - 1) { batches =>
      batches.next(): Unit
      awaitUploads(before)
      while (storesWithSnapshot < spec.stores && further <= spec.batchesSince + 1) {
        batches.next(): Unit
        further += 1
      }
    }
    if (further > spec.batchesSince + 1)
      throw new IllegalStateException(s"it took ${further - 1} batches until commit entries held all snapshots")
    StateStores.close()
    query.configure((if (spec.asConfigured) Defaults else Never): _*)
    val left = spec.batchesSince + 1 - further
    if (left > 0) query.run(spec.batchesBefore - 1 + further, left)
  }

  private def awaitUploads(before: Long): Unit = {
    val until = System.nanoTime() + UploadsWithinNanos
    def uploaded = StateStores.uploadedSnapshots - before
    while (uploaded < spec.stores && System.nanoTime() < until) Thread.sleep(50)
    if (uploaded < spec.stores)
      throw new IllegalStateException(s"$uploaded of ${spec.stores} stores have uploaded a snapshot")
  }

  /** In commit entries. */
  private def storesWithSnapshot: Int = {
    val checkpoint = Paths.get(spec.root, spec.contender)
    LoggedBatches.indexes(checkpoint).flatMap(_.entries).map(_.key)
      .filter(_.kind == SegmentKind.Snapshot).map(_.storeDirectory).distinct.size
  }

  private def asFiles(): Unit = {
    query.configure(MinDeltas -> "1", MaintenanceInterval -> "1h")
    query.from(0) { batches =>
      batches.take(spec.batchesBefore).foreach(_ => ())
      StateStores.maintain()
    }
    if (snapshots() < spec.stores)
      throw new IllegalStateException(
        s"${snapshots()} of ${spec.stores} stores have a snapshot of version ${spec.batchesBefore}"
      )
    // Stores read their configuration when they are loaded.
    StateStores.close()
    query.configure(MinDeltas -> Int.MaxValue.toString)
    if (spec.batchesSince > 0) query.run(spec.batchesBefore, spec.batchesSince)
  }

  private def snapshots(): Long = Using.resource(Files.walk(Paths.get(spec.root, spec.contender, "state"))) {
    _.iterator.asScala.count(isSnapshot).toLong
  }

  private def isSnapshot(file: Path): Boolean = file.getFileName.toString match {
    case SnapshotName(version) => version.toInt == spec.batchesBefore
    case _ => false
  }
}

private object Preparation {
  private val UploadsWithinNanos = 600L * 1000 * 1000 * 1000
  private val SnapshotName = """(\d+)(?:_[^.]+)?\.zip""".r
}
