// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.checkpoints

import java.nio.file.{Files, Path => LocalPath}

import scala.util.matching.Regex

import sparkdstl.log.error.Causes
import sparkdstl.log.format.SegmentKind
import sparkdstl.testing.LocalFiles

import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.EntryPoints
import org.apache.spark.sql.execution.streaming.state.dstl.{LoggedBatches, Patience, QuerySuite, SparkFacts}
import org.apache.spark.sql.functions.{col, timestamp_seconds}
import org.apache.spark.sql.streaming.StreamingQuery

/** Stored objects that are damaged, missing or foreign: the error names each first, and a restart loses nothing. */
class DamageSuite extends QuerySuite with Patience {
  private val uploads = option("inline.maxSegmentSize") -> "0"

  /**
   * Runs batches 0 to 3, damages an object, and returns the first line of a restart's error, which is also its last cause. If it
   * names a batch, a copy of the checkpoint is rolled back to it, and continues. Then the object is repaired, and the query
   * continues.
   */
  private def restartAfter(more: (String, String)*)(damage: => () => Unit): String = {
    configure(more: _*)
    val input = numbers()
    complete(start(counts(input), "before"), input, 0 until 10, 10 until 20, 20 until 30, 30 until 40)
    val repair = damage
    // An end of a run may be written meanwhile.
    val before = contents(
      files().filter(file => (file.startsWith("dstl/") || file.startsWith("commits/")) && !file.contains(".tmp"))
    )
    input.addData(40 until 50)
    val error = failure(start(counts(input), "damaged"))
    assert(contents(before.keys.toSeq) == before, "the failed start changed files")
    val shown = error.getMessage.linesIterator.next()
    val last = Causes.of(error).toVector.last.getMessage
    assert(last.startsWith("[DSTL_") && shown.contains(last), s"$last is the last cause of $shown")
    assert(shown.contains(s"`dstl verify file:$checkpoint`"), shown)
    RollBack.findFirstMatchIn(shown).foreach(found => rollBack(found.group(1), found.group(2).toInt))
    repair()
    complete(start(counts(input), "repaired"))
    assert(rows("repaired") == counted(0 until 50))
    shown
  }

  private val RollBack = "`dstl rollback file:(\\S+) --to (\\d+) --apply`".r

  /** Deletes the later batches in a copy of the checkpoint, and continues. */
  private def rollBack(from: String, to: Int): Unit = {
    assert(from == checkpoint.toString)
    val copy = directory.resolve("copy")
    LocalFiles.copy(checkpoint, copy)
    for (batch <- to + 1 to 4; file <- Seq(s"commits/$batch", s"offsets/$batch"))
      Seq(file, file.replace("/", "/.") + ".crc").foreach(name => Files.deleteIfExists(copy.resolve(name)))
    val input = numbers()
    (0 until 5).foreach(batch => input.addData(batch * 10 until batch * 10 + 10))
    complete(start(counts(input), "back", at = copy.toString))
    assert(rows("back") == counted(0 until 50), s"after a rollback to batch $to")
    LocalFiles.delete(copy)
  }

  private def contents(of: Seq[String]): Map[String, Seq[Byte]] =
    of.map(file => file -> Files.readAllBytes(checkpoint.resolve(file)).toSeq).toMap

  private def entry(batch: Int): LocalPath = checkpoint.resolve(s"commits/$batch")

  private def offsets(batch: Int): LocalPath = checkpoint.resolve(s"offsets/$batch")

  private def dataFileOf(batch: Int): LocalPath =
    checkpoint.resolve("dstl").resolve(LoggedBatches.index(checkpoint, batch.toLong).get.files.head)

  /** Replaces a file's content, or removes it; the result restores it with Hadoop's checksums. */
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

  private def empty(file: LocalPath): () => Unit = change(file)(_ => Some(Array.emptyByteArray))

  /** Keeps what a text editor shows of an entry: Spark's lines. */
  private def cutToTwoLines(file: LocalPath): () => Unit =
    change(file)(content =>
      Some(new String(content, "ISO-8859-1").split('\n').take(2).mkString("\n").getBytes("ISO-8859-1"))
    )

  private def removeLog(): () => Unit = {
    val below = files(checkpoint.resolve("dstl")).filterNot(_.endsWith(".crc"))
    all(below.map(name => remove(checkpoint.resolve("dstl").resolve(name))): _*)
  }

  private def all(repairs: (() => Unit)*): () => Unit = () => repairs.foreach(_())

  private def flip(file: LocalPath)(at: Array[Byte] => Int): () => Unit = change(file) { content =>
    content(at(content)) = (content(at(content)) ^ 1).toByte
    Some(content)
  }

  /** Changes the first digit of the watermark. */
  private def changeDigit(file: LocalPath): () => Unit = flip(file) { content =>
    val name = "WatermarkMs\":"
    new String(content, "ISO-8859-1").indexOf(name) + name.length
  }

  /** Where the first segment in an entry begins. */
  private def segmentIn(batch: Int): Int = {
    val (index, logStart) = LoggedBatches.placed(checkpoint, batch.toLong).get
    (logStart + index.entries.head.parts.head.offset).toInt
  }

  private val below = Map(
    providerKey -> classOf[RocksDBStateStoreProvider].getName,
    EntryPoints.ChangelogCheckpointing -> "true"
  )
  private val second = Map(formatKey -> "2")

  private val damaged = "[DSTL_DAMAGED_LOG]"
  private val missing = "[DSTL_MISSING_LOG_OBJECT]"

  /** Tests that a start fails with these words in its error, and names the batch to roll back to, if there is one. */
  private def fails(
      what: String,
      to: Option[Int],
      more: (String, String)*
  )(damage: => () => Unit)(words: String*): Unit =
    test(s"$what fails the query at its start, with its name and the way out") {
      val error = restartAfter(more: _*)(damage)
      assert(words.forall(error.contains(_)), error)
      assert(RollBack.findFirstMatchIn(error).map(_.group(2).toInt) == to, error)
    }

  fails("a commit entry that was cut off", Some(1))(cut(entry(2), 100))(damaged, "commits/2 is damaged at offset")
  fails("a newest commit entry that was cut off", Some(2))(cut(entry(3), 100))(damaged, "commits/3", "Restore the")
  fails("a commit entry cut to Spark's lines", Some(0))(cutToTwoLines(entry(1)))(damaged, "commits/1")
  fails("a newest commit entry cut to Spark's lines", Some(2))(cutToTwoLines(entry(3)))(damaged, "commits/3")
  fails("an emptied commit entry", Some(0))(empty(entry(1)))(damaged, "commits/1")
  fails("an emptied newest commit entry", Some(2))(empty(entry(3)))(damaged, "commits/3")
  fails("a changed watermark in the newest commit entry", Some(2))(changeDigit(entry(3)))(damaged, "commits/3")
  fails("a changed watermark in the newest offsets", Some(2))(changeDigit(offsets(3)))(
    damaged,
    "offsets/3",
    "not what batch 3 was computed from"
  )
  fails("an emptied newest entry in offsets", Some(2))(empty(offsets(3)))(damaged, "offsets/3")
  fails("an emptied entry in offsets before the newest", Some(1))(empty(offsets(2)))(damaged, "offsets/2")
  fails("a missing newest entry in offsets", Some(2))(remove(offsets(3)))(missing, "offsets/3", "No state is lost")

  test("a start that fails after its claim marks its end, so that a rollback finds no run") {
    // A run deletes the claims and marks of earlier ones.
    def newest(name: Regex) = (0L +: files().collect { case name(epoch) => epoch.toLong }).max
    val claim = "dstl/epochs/(\\d+)".r
    def hasEnded = newest("dstl/epochs/(\\d+)\\.ended".r) == newest(claim)
    val input = numbers()
    for (name <- Seq("first", "second")) {
      input.addData(0 until 10)
      complete(start(counts(input), name))
    }
    eventually(assert(hasEnded))
    val before = newest(claim)
    remove(offsets(1)): Unit
    assert(failure(start(counts(input), "damaged")).getMessage.contains(missing))
    assert(newest(claim) > before)
    eventually(assert(hasEnded))
  }

  fails("a missing entry in offsets before the newest", Some(1))(remove(offsets(2)))(missing, "offsets/2")
  fails("a flipped bit in a data file", Some(1), uploads)(flip(dataFileOf(2))(_ => 40))(damaged, "/dstl/data/")
  fails("a missing data file", Some(1), uploads)(remove(dataFileOf(2)))(missing, ".changelog")
  fails("a missing log directory", None, uploads)(removeLog())(missing, "/dstl/data/", "No batch can be rebuilt")
  fails("a missing commit entry", Some(0))(remove(entry(1)))(missing, "commits/1", "2.changelog")

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

  for ((name, more) <- Seq("our provider" -> Map.empty[String, String], "Spark's provider" -> below))
    fails(s"a copy of a running query's checkpoint that lacks entries, with $name,", Some(1), more.toSeq: _*)(
      all(remove(entry(2)), remove(entry(3)))
    )(missing, "commits/2")

  if (SparkFacts.JoinFormats.contains(3))
    test("a store with column families is not loaded without its snapshot, and the error names that") {
      configure(uploads, "spark.sql.streaming.join.stateFormatVersion" -> "3")
      val input = numbers()
      def startJoin(): StreamingQuery = {
        val events = input.toDF().withColumn("at", timestamp_seconds(col("value"))).withWatermark("at", "1 hour")
        val pairs = events.join(events.withColumnRenamed("at", "other"), Seq("value"))
        pairs.writeStream.format("noop").option("checkpointLocation", checkpoint.toString).start()
      }
      complete(startJoin(), input, 0 until 10, 10 until 20)
      val zip = LoggedBatches.index(checkpoint, 0).get.entries.find(_.key.kind == SegmentKind.Snapshot).get
      val part = zip.parts.head
      val file = checkpoint.resolve("dstl").resolve(part.file.get)
      input.addData(20 until 30)
      val flipped = () => flip(file)(_ => (part.offset + part.length / 2).toInt)
      val lost = () => remove(file)
      for ((damage, named) <- Seq(flipped -> s"$damaged Segment ${zip.key.relativePath}", lost -> missing)) {
        val repair = damage()
        val shown = failure(startJoin()).getMessage.linesIterator.next()
        assert(shown.contains(named) && shown.contains(part.file.get), shown)
        assert(shown.contains("No batch can be rebuilt"), shown)
        repair()
      }
      complete(startJoin())
    }
}
