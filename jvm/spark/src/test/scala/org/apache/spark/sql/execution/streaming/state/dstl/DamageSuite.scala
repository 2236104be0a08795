package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.file.{Files, Path => LocalPath}

import org.apache.spark.sql.{DataFrame, Encoders}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.EntryPoints
import org.apache.spark.sql.functions._

/** Stored objects that are damaged, missing or foreign: the error names each first, and a restart loses nothing. */
class DamageSuite extends QuerySuite {
  private val uploads = option("inline.maxSegmentSize") -> "0"

  private def counts(input: MemoryStream[Int]): DataFrame = input.toDF().groupBy((col("value") % 7).as("key")).count()

  /**
   * Runs batches 0 to 3, damages what is stored, and tells the first line of what a restart says; then undoes the damage and
   * goes on.
   */
  private def restartAfter(more: (String, String)*)(damage: => () => Unit): String = {
    stopSpark()
    startSpark(more: _*)
    val input = MemoryStream[Int](Encoders.scalaInt, spark)
    val query = start(counts(input), "before")
    (0 until 4).foreach { batch =>
      input.addData(batch * 10 until batch * 10 + 10)
      query.processAllAvailable()
    }
    query.stop()
    val repair = damage
    val before = contents()
    input.addData(40 until 50)
    val error = failure(start(counts(input), "damaged"))
    assert(contents().filter { case (file, _) => before.contains(file) } == before, "the failed start changed files")
    repair()
    val repaired = start(counts(input), "repaired")
    try repaired.processAllAvailable()
    finally repaired.stop()
    assert(rows("repaired") == (0 until 50).groupBy(_ % 7).map { case (key, of) => s"[$key,${of.size}]" }.toSet)
    error.getMessage.linesIterator.next()
  }

  private def contents(): Map[String, Seq[Byte]] =
    files().filter(file => file.startsWith("dstl/") || file.startsWith("commits/"))
      .map(file => file -> Files.readAllBytes(checkpoint.resolve(file)).toSeq).toMap

  private def entry(batch: Int): LocalPath = checkpoint.resolve(s"commits/$batch")

  private def dataFile(): LocalPath =
    checkpoint.resolve("dstl/data").resolve(files(checkpoint.resolve("dstl/data")).filterNot(_.endsWith(".crc")).head)

  /** Replaces a file's content, or removes it; what is returned restores it, with its checksums by Hadoop. */
  private def change(file: LocalPath)(edit: Array[Byte] => Option[Array[Byte]]): () => Unit = {
    val checksums = file.resolveSibling(s".${file.getFileName}.crc")
    val saved = Seq(file, checksums).filter(Files.exists(_)).map(each => each -> Files.readAllBytes(each))
    val content = edit(Files.readAllBytes(file))
    Files.deleteIfExists(checksums)
    Files.delete(file)
    content.foreach(Files.write(file, _))
    () => saved.foreach { case (each, bytes) => Files.write(each, bytes) }
  }

  private def cut(file: LocalPath, bytes: Int): () => Unit = change(file)(content => Some(content.dropRight(bytes)))

  private def remove(file: LocalPath): () => Unit = change(file)(_ => None)

  private def flip(file: LocalPath)(at: Array[Byte] => Int): () => Unit = change(file) { content =>
    content(at(content)) = (content(at(content)) ^ 1).toByte
    Some(content)
  }

  /** Where the first segment in an entry begins. */
  private def segmentIn(batch: Int): Int = {
    val (index, logStart) = LoggedBatches.placed(checkpoint, batch.toLong).get
    (logStart + index.entries.head.parts.head.offset).toInt
  }

  private val below = Map(
    "spark.sql.streaming.stateStore.providerClass" -> classOf[RocksDBStateStoreProvider].getName,
    EntryPoints.ChangelogCheckpointing -> "true"
  )
  private val second = Map("spark.sql.streaming.stateStore.checkpointFormatVersion" -> "2")

  test("the error names a commit entry that was cut off") {
    val error = restartAfter()(cut(entry(2), 100))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains("commits/2"), error)
  }

  test("a newest commit entry that was cut off fails the query at its start") {
    val error = restartAfter()(cut(entry(3), 100))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains("commits/3"), error)
  }

  for (
    (name, more) <- Seq(
      "our provider" -> Map.empty[String, String],
      "Spark's provider" -> below,
      "our provider in format version 2" -> second,
      "Spark's provider in format version 2" -> (below ++ second)
    )
  )
    test(s"a segment with a flipped bit is never replayed, and the error names store and version first: $name") {
      val error = restartAfter(more.toSeq: _*)(flip(entry(1))(_ => segmentIn(1) + 5))
      assert(error.contains("[DSTL_DAMAGED_LOG]") && error.matches(".*0/[0-2]/2[_0-9a-f-]*.changelog.*"), error)
      assert(error.contains("state version 2"), error)
      assert(!error.contains("UNCATEGORIZED"), error)
    }

  test("a flipped bit in an index is an error") {
    val error = restartAfter()(flip(entry(1))(_.length - 75))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains("index"), error)
  }

  test("a flipped bit in a data file is an error") {
    val error = restartAfter(uploads)(flip(dataFile())(_ => 40))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains("/dstl/data/"), error)
  }

  test("a data file that was cut off is an error") {
    val error = restartAfter(uploads)(change(dataFile())(content => Some(content.take(60))))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains("/dstl/data/"), error)
  }

  test("the error names a missing data file and what needs it") {
    val error = restartAfter(uploads)(remove(dataFile()))
    assert(error.contains("[DSTL_MISSING_LOG_OBJECT]") && error.contains(".changelog"), error)
  }

  test("the error names a missing commit entry and what needs it") {
    val error = restartAfter()(remove(entry(1)))
    assert(
      error.contains("[DSTL_MISSING_LOG_OBJECT]") && error.contains("commits/1") && error.contains("2.changelog"),
      error
    )
  }

  for ((name, more) <- Seq("our provider" -> Map.empty[String, String], "Spark's provider" -> below))
    test(s"entries that a copy of a running query's checkpoint lacks are told, with the way back: $name") {
      val error = restartAfter(more.toSeq: _*) {
        val repairs = Seq(remove(entry(2)), remove(entry(3)))
        () => repairs.foreach(_())
      }
      assert(error.contains("[DSTL_MISSING_LOG_OBJECT]") && error.contains("commits/2"), error)
      assert(error.contains(s"dstl rollback file:$checkpoint --to 1 --apply"), error)
    }

  test("an entry under another entry's name is an error") {
    val error = restartAfter()(change(entry(2))(_ => Some(Files.readAllBytes(entry(1)))))
    assert(error.contains("[DSTL_DAMAGED_LOG]") && error.contains("commits/2"), error)
  }
}
