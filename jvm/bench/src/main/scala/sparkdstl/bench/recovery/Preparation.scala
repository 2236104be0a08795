package sparkdstl.bench.recovery

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.streaming.state.dstl.StateStores

/** Makes a checkpoint whose newest snapshots are of a known version. */
private final class Preparation(spec: RecoverySpec, spark: SparkSession) {
  import Preparation._
  import SnapshotSettings._

  def run(): Unit = if (spec.contender.usesLog) inTheLog() else asFiles()

  /** Snapshots of all stores at once, which the next commit entries hold: as many as it takes. */
  private def inTheLog(): Unit = {
    val query = new RestartedQuery(spec, spark)
    query.configure(Never: _*)
    query.configure(MinDeltas -> "1")
    query.run(0, spec.batchesBefore - 1)(()): Unit
    StateStores.close()
    query.configure(ReplayCost -> "100000")
    var further = 0
    query.runWhile(spec.batchesBefore - 1) {
      further += 1
      if (further == 1) awaitOffers()
      StateStores.offeredSnapshots > 0
    }
    if (further > spec.batchesSince + 1)
      throw new IllegalStateException(s"it took ${further - 1} batches until commit entries held all snapshots")
    StateStores.close()
    query.configure((if (spec.asConfigured) Defaults else Never): _*)
    val left = spec.batchesSince + 1 - further
    if (left > 0) query.run(spec.batchesBefore - 1 + further, left)(()): Unit
  }

  private def awaitOffers(): Unit = {
    val until = System.nanoTime() + OffersWithinNanos
    while (StateStores.offeredSnapshots < spec.stores && System.nanoTime() < until) Thread.sleep(50)
    if (StateStores.offeredSnapshots < spec.stores)
      throw new IllegalStateException(
        s"${StateStores.offeredSnapshots} of ${spec.stores} stores have offered a snapshot"
      )
  }

  private def asFiles(): Unit = {
    val query = new RestartedQuery(spec, spark)
    query.configure(MinDeltas -> "1", MaintenanceInterval -> "1h")
    query.run(0, spec.batchesBefore)(StateStores.maintain()): Unit
    if (snapshots() < spec.stores)
      throw new IllegalStateException(
        s"${snapshots()} of ${spec.stores} stores have a snapshot of version ${spec.batchesBefore}"
      )
    // What is configured for stores holds from when they are loaded.
    StateStores.close()
    query.configure(MinDeltas -> Int.MaxValue.toString)
    if (spec.batchesSince > 0) query.run(spec.batchesBefore, spec.batchesSince)(()): Unit
  }

  private def snapshots(): Long = Using.resource(Files.walk(Paths.get(spec.root, spec.contender.name, "state"))) {
    _.iterator.asScala.count(isSnapshot).toLong
  }

  private def isSnapshot(file: Path): Boolean = file.getFileName.toString match {
    case SnapshotName(version) => version.toInt == spec.batchesBefore
    case _ => false
  }
}

private object Preparation {
  private val OffersWithinNanos = 600L * 1000 * 1000 * 1000
  private val SnapshotName = """(\d+)(?:_[^.]+)?\.zip""".r
}
