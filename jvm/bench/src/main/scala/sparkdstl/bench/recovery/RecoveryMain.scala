package sparkdstl.bench.recovery

import java.io.File
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

import sparkdstl.bench.{BenchSession, DelayedFileSystem, Recorder, Workload}
import sparkdstl.log.config.LogOptions

import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.dstl.StateStores
import org.apache.spark.sql.streaming.{StreamingQueryProgress, Trigger}

/**
 * Measures the first batch of a query that is started again, in a process that has done nothing else:
 * `RecoveryMain <specification.json>`.
 *
 * The phase `prepare` makes the checkpoint, on storage that takes no time; `recover` runs one more batch on storage that
 * does, and writes what it took.
 */
object RecoveryMain {

  def main(arguments: Array[String]): Unit = {
    val spec = RecoverySpec.read(new File(arguments.head))
    val spark = BenchSession.start(spec.root, spec.partitions)
    try
      if (spec.phase == RecoverySpec.Prepare) new Preparation(spec, spark).run()
      else new Recovery(spec, spark).run()
    finally spark.stop()
  }
}

/** Makes a checkpoint whose newest snapshots are of a known version. */
private final class Preparation(spec: RecoverySpec, spark: SparkSession) {
  import Preparation._

  def run(): Unit = if (spec.contender.usesLog) inTheLog() else asFiles()

  /** Snapshots of all stores at once, which the next commit entries hold: as many as it takes. */
  private def inTheLog(): Unit = {
    val query = new RestartedQuery(spec, spark)
    query.configure(MinDeltas -> "1", MaintenanceInterval -> "1h", Interval -> "24h", ReplayCost -> "0")
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
    query.configure(ReplayCost -> "0")
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
    query.run(spec.batchesBefore, spec.batchesSince)(()): Unit
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
  private val MinDeltas = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
  private val MaintenanceInterval = "spark.sql.streaming.stateStore.maintenanceInterval"
  private val Interval = LogOptions.Prefix + LogOptions.MaterializeInterval.key
  private val ReplayCost = LogOptions.Prefix + LogOptions.MaterializeReplayCost.key
  private val OffersWithinNanos = 120L * 1000 * 1000 * 1000
  private val SnapshotName = """(\d+)(?:_[^.]+)?\.zip""".r
}

/** Runs the next batch of what was prepared, or the first one of a new query. */
private final class Recovery(spec: RecoverySpec, spark: SparkSession) {

  def run(): Unit = {
    val query = new RestartedQuery(spec, spark)
    val done = spec.batchesBefore + spec.batchesSince
    DelayedFileSystem.delayFromNow(spec.delays)
    val began = System.nanoTime()
    val (progress, millis) = query.run(done, 1)((System.nanoTime() - began) / 1000000L)
    if (progress.batchId != done)
      throw new IllegalStateException(s"${spec.contender.name} ran batch ${progress.batchId} instead of $done")
    val recorder = new Recorder(spec.output)
    try {
      recorder.recovery(spec.contender, millis, progress)
      DelayedFileSystem.requests.foreach { case ((contender, request, file), asked) =>
        recorder.requests(contender, request, file, asked)
      }
    } finally recorder.close()
  }
}

/** A query that is started again in any process: its input is made anew. */
private final class RestartedQuery(spec: RecoverySpec, spark: SparkSession) {
  private val session = spark.newSession()
  configure((spec.confs ++ spec.contender.configuration).toSeq: _*)
  configure("spark.sql.shuffle.partitions" -> spec.partitions.toString)

  def configure(entries: (String, String)*): Unit = entries.foreach { case (key, value) =>
    session.conf.set(key, value)
  }

  /**
   * Starts the query, of which `done` batches were run before, runs so many more and stops it.
   *
   * @param atTheEnd evaluated while the query still runs
   */
  def run[T](done: Int, batches: Int)(atTheEnd: => T): (StreamingQueryProgress, T) = {
    var left = batches
    var result = Option.empty[T]
    val progress = runWhile(done) {
      left -= 1
      if (left <= 0) result = Some(atTheEnd)
      left > 0
    }
    (progress, result.get)
  }

  /**
   * Starts the query, of which `done` batches were run before, runs one more and others until told to stop.
   *
   * @param goesOn asked after each batch
   */
  def runWhile(done: Int)(goesOn: => Boolean): StreamingQueryProgress = {
    val ticks = MemoryStream[Long](Encoders.scalaLong, session)
    // What the source has given out before the restart, it has to have given out after it.
    (0 until done).foreach(tick => ticks.addData(tick.toLong): Unit)
    ticks.addData(done.toLong): Unit
    val query = Workload.over(ticks, spec.workload).writeStream.format("noop")
      .outputMode(spec.workload.outputMode).trigger(Trigger.ProcessingTime(0))
      .option("checkpointLocation", s"${DelayedFileSystem.Scheme}://${spec.root}/${spec.contender.name}").start()
    try {
      query.processAllAvailable()
      var tick = done
      while (goesOn) {
        tick += 1
        ticks.addData(tick.toLong): Unit
        query.processAllAvailable()
      }
      query.recentProgress.filter(_.numInputRows > 0).last
    } finally query.stop()
  }
}
