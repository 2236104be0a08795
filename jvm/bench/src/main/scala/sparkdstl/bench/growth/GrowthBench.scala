// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.growth

import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import scala.util.Try

import sparkdstl.bench._
import sparkdstl.testing.LocalFiles

import org.apache.spark.sql.SparkSession

/** Measures what grows with the number of batches, on storage without delays. */
object GrowthBench {

  // Spark's memory of the past, for its user interface, would grow as well.
  private val shortMemory = Seq("ui.retainedJobs", "ui.retainedStages", "ui.retainedTasks", "sql.ui.retainedExecutions")
    .map(name => s"spark.$name" -> "50").toMap

  def run(spec: GrowthSpec): Unit =
    BenchSession.use(spec, shortMemory)((spark, recorder) => new GrowthBench(spec, spark, recorder).run())
}

private final class GrowthBench(spec: GrowthSpec, spark: SparkSession, recorder: Recorder) {
  private val contender = Contender.named(spec.contender)
  private val checkpoint = new StoredObjects(Paths.get(spec.root, contender.name))

  def run(): Unit = {
    val query = new BenchedQuery(spec, contender, BenchSession.of(spec, contender, spark))
    val began = System.nanoTime()
    try
      (1 to spec.batches).foreach { batches =>
        val due = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(spec.periodMs)
        val progress = query.batch(Seq(batches.toLong))
        if (batches % spec.sampleEvery == 0 || batches == spec.batches) {
          val isWithHeap = batches % (spec.sampleEvery * spec.heapEvery) == 0
          recorder.growth(
            contender,
            batches,
            TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began),
            checkpoint.byKind(),
            Option.when(isWithHeap)(ProcessFigures.liveHeap()),
            progress,
            DelayedFileSystem.requestsOf(contender.name)
          )
          BenchMain.done(batches)
        }
        val left = TimeUnit.NANOSECONDS.toMillis(due - System.nanoTime())
        if (left > 0) Thread.sleep(left)
      }
    finally query.stop()
  }
}

/** The objects below a checkpoint's directory, read without the file system that counts requests. */
private final class StoredObjects(directory: Path) {

  /** Numbers of objects and bytes, by kind. Objects may be created and deleted meanwhile. */
  def byKind(): Map[String, Asked] = {
    val found = for {
      name <- LocalFiles.below(directory)
      // The name of a file that is not published yet begins with a dot.
      if !Paths.get(name).getFileName.toString.startsWith(".")
      size <- Try(Files.size(directory.resolve(name))).toOption
    } yield DelayedFileSystem.kindOf(s"/$name") -> Asked(1, size)
    found.groupMapReduce(_._1)(_._2)(_ + _)
  }
}
