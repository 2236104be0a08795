package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format._

class LogCatalogSuite extends AnyFunSuite {
  private val writer = Writer(UUID.fromString("00000000-0000-0000-0000-00000000000a"), "host", "application")

  private def key(partition: Int, version: Long): SegmentKey =
    SegmentKey(0, partition, "", version, None, SegmentKind.Changelog)

  private def index(batch: Long, entries: (SegmentKey, Option[String])*): LogFileIndex =
    LogFileIndex(
      LogFileKind.BatchLog,
      writer,
      Some(batch),
      RunHistory.empty,
      entries.map { case (of, file) => SegmentEntry(of, Vector(SegmentPart(file, 0, 5, 1))) }.toVector
    )

  test("a store's segments are listed under Spark's file names") {
    val catalog = new LogCatalog
    catalog.add("batches/0", index(0, key(0, 1) -> None, key(1, 1) -> None), 3)
    catalog.add("batches/1", index(1, key(0, 2) -> None), 4)
    assert(catalog.list("0/0") == Seq(ListedSegment("1.changelog", 5, 3), ListedSegment("2.changelog", 5, 4)))
    assert(catalog.list("0/7") == Nil)
  }

  test("a log file is free when its last segment is released, not before") {
    val catalog = new LogCatalog
    catalog.add("batches/0", index(0, key(0, 1) -> None, key(1, 1) -> Some("data/a")), 0)
    assert(catalog.release(key(0, 1)).contains(Nil))
    assert(catalog.isReferenced("batches/0"))
    assert(catalog.release(key(1, 1)).map(_.toSet).contains(Set("batches/0", "data/a")))
    assert(!catalog.isReferenced("batches/0") && catalog.size == 0)
  }

  test("a data file that segments of two batches share is free with the later one") {
    val catalog = new LogCatalog
    catalog.add("batches/0", index(0, key(0, 1) -> Some("data/a")), 0)
    catalog.add("batches/1", index(1, key(0, 2) -> Some("data/a")), 0)
    assert(catalog.release(key(0, 1)).contains(Seq("batches/0")))
    assert(catalog.oldestBatch.contains(1L))
    assert(catalog.release(key(0, 2)).map(_.toSet).contains(Set("batches/1", "data/a")))
    assert(catalog.oldestBatch.isEmpty)
  }

  test("releasing what is not in the log, or twice, says so and frees nothing") {
    val catalog = new LogCatalog
    catalog.add("batches/0", index(0, key(0, 1) -> None), 0)
    assert(catalog.release(key(5, 1)).isEmpty)
    assert(catalog.release(key(0, 1)).nonEmpty)
    assert(catalog.release(key(0, 1)).isEmpty)
  }

  test("adding the same batch log again changes nothing") {
    val catalog = new LogCatalog
    (1 to 2).foreach(_ => catalog.add("batches/0", index(0, key(0, 1) -> None), 0))
    assert(catalog.release(key(0, 1)).contains(Seq("batches/0")))
  }
}
