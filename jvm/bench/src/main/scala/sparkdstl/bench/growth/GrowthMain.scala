package sparkdstl.bench.growth

import java.io.{File, IOException}
import java.nio.file.{FileVisitResult, Files, Path, Paths, SimpleFileVisitor}
import java.nio.file.attribute.BasicFileAttributes
import java.util.concurrent.TimeUnit

import sparkdstl.bench.{Asked, BenchSession, DelayedFileSystem, Recorder, Workload}
import sparkdstl.bench.driver.ProcessFigures

import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.streaming.Trigger

/**
 * Measures what grows with the number of batches: `GrowthMain <specification.json>`. Storage takes no time. Prints a line for
 * each sample.
 */
object GrowthMain {

  // What Spark remembers of the past for its user interface would grow as well.
  private val shortMemory = Seq("ui.retainedJobs", "ui.retainedStages", "ui.retainedTasks", "sql.ui.retainedExecutions")
    .map(name => s"spark.$name" -> "50").toMap

  def main(arguments: Array[String]): Unit = {
    val spec = GrowthSpec.read(new File(arguments.head))
    val spark = BenchSession.start(spec.root, spec.partitions, shortMemory)
    val recorder = new Recorder(spec.output)
    try new GrowthMain(spec, spark, recorder).run()
    finally {
      recorder.close()
      spark.stop()
    }
  }
}

private final class GrowthMain(spec: GrowthSpec, spark: SparkSession, recorder: Recorder) {
  private val checkpoint = new StoredObjects(Paths.get(spec.root, spec.contender.name))

  def run(): Unit = {
    val session = spark.newSession()
    (spec.confs ++ spec.contender.configuration).foreach { case (key, value) => session.conf.set(key, value) }
    session.conf.set("spark.sql.shuffle.partitions", spec.partitions.toLong)
    val ticks = MemoryStream[Long](Encoders.scalaLong, session)
    val query = Workload.over(ticks, spec.workload).writeStream.format("noop")
      .outputMode(spec.workload.outputMode).trigger(Trigger.ProcessingTime(0))
      .option("checkpointLocation", s"${DelayedFileSystem.Scheme}://${spec.root}/${spec.contender.name}").start()
    val began = System.nanoTime()
    try
      (1 to spec.batches).foreach { batches =>
        val due = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(spec.periodMillis)
        ticks.addData(batches.toLong): Unit
        query.processAllAvailable()
        if (batches % spec.sampleEvery == 0 || batches == spec.batches) {
          val isWithHeap = batches % (spec.sampleEvery * spec.heapEvery) == 0
          recorder.growth(
            spec.contender,
            batches,
            TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began),
            checkpoint.byKind(),
            Option.when(isWithHeap)(ProcessFigures.liveHeap()),
            query.recentProgress.filter(_.numInputRows > 0).last,
            DelayedFileSystem.requestsOf(spec.contender.name)
          )
          println(s"batches $batches")
        }
        val left = TimeUnit.NANOSECONDS.toMillis(due - System.nanoTime())
        if (left > 0) Thread.sleep(left)
      }
    finally query.stop()
  }
}

/** What lies below a checkpoint's directory, seen past the file system that counts requests. */
private final class StoredObjects(directory: Path) {

  /** How many objects of each kind there are, and of how many bytes. Some may come or go meanwhile. */
  def byKind(): Map[String, Asked] = {
    val found = Vector.newBuilder[(String, Asked)]
    Files.walkFileTree(
      directory,
      new SimpleFileVisitor[Path] {
        override def visitFile(file: Path, attributes: BasicFileAttributes): FileVisitResult = {
          // Nothing begins with a dot but what is not published yet.
          if (!file.getFileName.toString.startsWith("."))
            found += DelayedFileSystem.kindOf(s"/${directory.relativize(file)}") -> Asked(1, attributes.size)
          FileVisitResult.CONTINUE
        }

        override def visitFileFailed(file: Path, gone: IOException): FileVisitResult = FileVisitResult.CONTINUE

        override def postVisitDirectory(of: Path, gone: IOException): FileVisitResult = FileVisitResult.CONTINUE
      }
    ): Unit
    found.result().groupMapReduce(_._1)(_._2)(_ + _)
  }
}
