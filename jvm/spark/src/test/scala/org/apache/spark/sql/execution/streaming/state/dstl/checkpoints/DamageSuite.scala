// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.checkpoints

import java.nio.file.{Files, Path => LocalPath}

import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.EntryPoints
import org.apache.spark.sql.execution.streaming.state.dstl.{LoggedBatches, QuerySuite}

/** Stored objects that are damaged, missing or foreign: the error names each first, and a restart loses nothing. */
class DamageSuite extends QuerySuite {
  private val uploads = option("inline.maxSegmentSize") -> "0"

  /**
   * Runs batches 0 to 3, damages an object, and returns the first line of a restart's error; then repairs the object and
   * continues.
   */
  private def restartAfter(more: (String, String)*)(damage: => () => Unit): String = {
    stopSpark()
    startSpark(more: _*)
    val input = numbers()
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
    complete(start(counts(input), "repaired"))
    assert(rows("repaired") == counted(0 until 50))
    error.getMessage.linesIterator.next()
  }

  private def contents(): Map[String, Seq[Byte]] =
    files().filter(file => file.startsWith("dstl/") || file.startsWith("commits/"))
      .map(file => file -> Files.readAllBytes(checkpoint.resolve(file)).toSeq).toMap

  private def entry(batch: Int): LocalPath = checkpoint.resolve(s"commits/$batch")

  private def dataFile(): LocalPath =
    checkpoint.resolve("dstl/data").resolve(files(checkpoint.resolve("dstl/data")).filterNot(_.endsWith(".crc")).head)

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
    providerKey -> classOf[RocksDBStateStoreProvider].getName,
    EntryPoints.ChangelogCheckpointing -> "true"
  )
  private val second = Map(formatKey -> "2")

  private val damaged = "[DSTL_DAMAGED_LOG]"
  private val missing = "[DSTL_MISSING_LOG_OBJECT]"

  for {
    (what, more, damage, words) <- Seq[(String, Seq[(String, String)], () => () => Unit, Seq[String])](
      ("a commit entry that was cut off", Nil, () => cut(entry(2), 100), Seq(damaged, "commits/2")),
      ("a newest commit entry that was cut off", Nil, () => cut(entry(3), 100), Seq(damaged, "commits/3")),
      ("a flipped bit in a data file", Seq(uploads), () => flip(dataFile())(_ => 40), Seq(damaged, "/dstl/data/")),
      ("a missing data file", Seq(uploads), () => remove(dataFile()), Seq(missing, ".changelog")),
      ("a missing commit entry", Nil, () => remove(entry(1)), Seq(missing, "commits/1", "2.changelog"))
    )
  } test(s"$what fails the query at its start, with its name") {
    val error = restartAfter(more: _*)(damage())
    assert(words.forall(error.contains(_)), error)
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

  for ((name, more) <- Seq("our provider" -> Map.empty[String, String], "Spark's provider" -> below))
    test(s"an error names entries that a copy of a running query's checkpoint lacks, and the way back: $name") {
      val error = restartAfter(more.toSeq: _*) {
        val repairs = Seq(remove(entry(2)), remove(entry(3)))
        () => repairs.foreach(_())
      }
      assert(error.contains("[DSTL_MISSING_LOG_OBJECT]") && error.contains("commits/2"), error)
      assert(error.contains(s"dstl rollback file:$checkpoint --to 1 --apply"), error)
    }
}
