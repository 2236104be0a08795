package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.ByteBuffer
import java.nio.file.{Files, Path => LocalPath}

import sparkdstl.log.format.{LogFile, LogFileWriter}

import org.apache.spark.sql.{DataFrame, SQLContext}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._

/** Stored objects that are damaged, missing or foreign: each is told with its name, and nothing is lost by trying. */
class DamageSuite extends QuerySuite {
  // Every batch after the first is replayed on restart, and large segments go to data files.
  private val uploads = option("inline.maxSegmentSize") -> "0"

  private def counts(input: MemoryStream[Int]): DataFrame = input.toDF().groupBy((col("value") % 7).as("key")).count()

  /** Runs batches 0 to 3, damages what is stored, and tells what a restart says; then undoes the damage and goes on. */
  private def restartAfter(more: (String, String)*)(damage: => () => Unit): String = {
    stopSpark()
    startSpark(more: _*)
    val session = spark
    import session.implicits._
    implicit val context: SQLContext = spark.sqlContext
    val input = MemoryStream[Int]
    val query = start(counts(input), "before")
    (0 until 4).foreach { batch =>
      input.addData(batch * 10 until batch * 10 + 10)
      query.processAllAvailable()
    }
    query.stop()
    val repair = damage
    val before = contents()
    input.addData(40 until 50)
    val error = messages(failure(start(counts(input), "damaged")))
    assert(contents().filter { case (file, _) => before.contains(file) } == before, "the failed start changed files")
    repair()
    val repaired = start(counts(input), "repaired")
    try repaired.processAllAvailable()
    finally repaired.stop()
    assert(rows("repaired") == (0 until 50).groupBy(_ % 7).map { case (key, of) => s"[$key,${of.size}]" }.toSet)
    error
  }

  private def contents(): Map[String, Seq[Byte]] =
    files(checkpoint.resolve("dstl")).map(file =>
      file -> Files.readAllBytes(checkpoint.resolve("dstl").resolve(file)).toSeq
    ).toMap

  private def batchLog(batch: Int): LocalPath = {
    val name = files(checkpoint.resolve("dstl/batches")).find(_.startsWith(s"$batch-")).get
    checkpoint.resolve("dstl/batches").resolve(name)
  }

  private def dataFile(): LocalPath =
    checkpoint.resolve("dstl/data").resolve(files(checkpoint.resolve("dstl/data")).head)

  /** Replaces a file's content; what is returned restores it. */
  private def change(file: LocalPath)(edit: Array[Byte] => Array[Byte]): () => Unit = {
    val content = Files.readAllBytes(file)
    Files.write(file, edit(content.clone()))
    () => Files.write(file, content): Unit
  }

  private def remove(file: LocalPath): () => Unit = {
    val content = Files.readAllBytes(file)
    Files.delete(file)
    () => Files.write(file, content): Unit
  }

  private def flip(content: Array[Byte], at: Int): Array[Byte] = {
    content(at) = (content(at) ^ 1).toByte
    content
  }

  test("a truncated batch log is told, with its name") {
    val error = restartAfter()(change(batchLog(2))(content => content.dropRight(content.length / 2)))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains(batchLog(2).getFileName.toString), error)
  }

  test("a truncated last batch log fails the query at its start") {
    val error = restartAfter()(change(batchLog(3))(_.take(20)))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains(batchLog(3).getFileName.toString), error)
  }

  test("a flipped bit in a segment is told, with store and version, and never replayed") {
    val error = restartAfter()(change(batchLog(1))(flip(_, 30)))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains("0/0/2.changelog"), error)
    assert(error.contains("state version 2"), error)
  }

  test("a flipped bit in an index is told") {
    val error = restartAfter()(change(batchLog(1))(content => flip(content, content.length - 45)))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains("index"), error)
  }

  test("a flipped bit in a data file is told") {
    val error = restartAfter(uploads)(change(dataFile())(flip(_, 30)))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains("/dstl/data/"), error)
  }

  test("a truncated data file is told") {
    val error = restartAfter(uploads)(change(dataFile())(_.take(60)))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains("/dstl/data/"), error)
  }

  test("a log file of a later format version is refused, naming both versions") {
    val error = restartAfter()(change(batchLog(1)) { content =>
      val trailer = content.length - LogFile.TrailerLength
      val buffer = ByteBuffer.wrap(content)
      buffer.putShort(8, 2).putInt(12, LogFileWriter.crc(content, 0, 12))
      buffer.putShort(trailer + 20, 2).putInt(trailer + 24, LogFileWriter.crc(content, trailer, 24))
      content
    })
    assert(error.contains("[DSTL_UNSUPPORTED_FORMAT]") && error.contains("format version 2"), error)
  }

  test("a missing batch log is told, with what needs it") {
    val error = restartAfter()(remove(batchLog(1)))
    assert(error.contains("[DSTL_MISSING_LOG_OBJECT]") && error.contains("2.changelog"), error)
  }

  test("a missing last batch log fails the query at its start") {
    val error = restartAfter()(remove(batchLog(3)))
    assert(error.contains("[DSTL_MISSING_LOG_OBJECT]") && error.contains("basePath"), error)
  }

  test("a missing data file is told, with what needs it") {
    val error = restartAfter(uploads)(remove(dataFile()))
    assert(error.contains("[DSTL_MISSING_LOG_OBJECT]") && error.contains(".changelog"), error)
  }

  test("a log directory that is gone is told") {
    val moved = directory.resolve("moved")
    val error = restartAfter() {
      Files.move(checkpoint.resolve("dstl"), moved)
      Files.createDirectories(checkpoint.resolve("dstl"))
      () =>
        Files.walk(
          checkpoint.resolve("dstl")
        ).sorted(java.util.Comparator.reverseOrder[LocalPath]()).forEach(Files.delete(_))
        Files.move(moved, checkpoint.resolve("dstl")): Unit
    }
    assert(error.contains("[DSTL_MISSING_LOG_OBJECT]"), error)
  }

  test("a damaged commit entry is told") {
    val entry = checkpoint.resolve("commits/3")
    val error = restartAfter()(change(entry)(content => new String(content).replace("\"run\"", "\"nur\"").getBytes))
    assert(error.contains("[DSTL_DAMAGED_COMMIT_ENTRY]") && error.contains("commits/3"), error)
  }
}
