package org.apache.spark.sql.execution.streaming.state.dstl

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.{SegmentKey, SegmentKind, SegmentPart}

class BatchSealsSuite extends AnyFunSuite {
  private def key(partition: Int, version: Long = 1, id: Option[String] = None): SegmentKey =
    SegmentKey(0, partition, "", version, id, SegmentKind.Changelog)

  private def inline(partition: Int, content: String, version: Long = 1): SealRequest =
    SealRequest("1", key(partition, version), Vector(SealedPart.Inline(content.getBytes)))

  private def pending(partition: Int, executor: String, ticket: Long): SealRequest =
    SealRequest(executor, key(partition), Vector(SealedPart.Pending(ticket, 10)))

  private def place(offset: Long): SegmentPart = SegmentPart(Some("data/run/file"), offset, 10, 7)

  private def resolved(seals: BatchSeals, batch: Long = 0): Map[Int, Either[String, Seq[Either[String, SegmentPart]]]] =
    seals.resolve(seals.close(batch)).map {
      case Left((of, why)) => of.partition -> Left(why)
      case Right(segment) => segment.key.partition -> Right(segment.parts.map(_.left.map(new String(_))))
    }.toMap

  test("inline segments are durable as soon as they are sealed") {
    val seals = new BatchSeals(100)
    assert(seals.seal(inline(0, "a")) == SealReply.Accepted)
    assert(seals.seal(inline(1, "b")) == SealReply.Accepted)
    assert(seals.whenSettled(seals.close(0)).isDone)
    assert(resolved(seals) == Map(0 -> Right(Seq(Left("a"))), 1 -> Right(Seq(Left("b")))))
  }

  test("a seal for a closed batch is refused, one for the next is not") {
    val seals = new BatchSeals(100)
    seals.close(0)
    assert(seals.seal(inline(0, "late")).isInstanceOf[SealReply.Refused])
    assert(seals.seal(inline(0, "next", version = 2)) == SealReply.Accepted)
  }

  test("of several attempts the last one wins") {
    val seals = new BatchSeals(100)
    seals.seal(inline(0, "first"))
    seals.seal(inline(0, "second"))
    assert(resolved(seals) == Map(0 -> Right(Seq(Left("second")))))
  }

  test("the barrier is settled when the last upload is reported, also if the report comes before the seal") {
    val seals = new BatchSeals(100)
    seals.report(UploadReport("2", 8, Right(place(80))))
    seals.seal(pending(1, "2", 8))
    seals.seal(pending(0, "1", 7))
    val keys = seals.close(0)
    assert(seals.holders(keys) == Set("1"))
    val settled = seals.whenSettled(keys)
    assert(!settled.isDone && seals.unsettled(keys) == Vector(key(0)))
    seals.report(UploadReport("1", 7, Right(place(70))))
    assert(settled.isDone)
    assert(resolved(seals) == Map(0 -> Right(Seq(Right(place(70)))), 1 -> Right(Seq(Right(place(80))))))
  }

  test("tickets of different executors are different") {
    val seals = new BatchSeals(100)
    seals.seal(pending(0, "1", 7))
    seals.report(UploadReport("2", 7, Right(place(70))))
    assert(!seals.whenSettled(seals.close(0)).isDone)
  }

  test("a failed upload loses the segment, with the reason") {
    val seals = new BatchSeals(100)
    seals.seal(pending(0, "1", 7))
    seals.report(UploadReport("1", 7, Left("no space")))
    assert(seals.whenSettled(seals.close(0)).isDone)
    assert(resolved(seals) == Map(0 -> Left("no space")))
  }

  test("an executor that is gone loses what it had not uploaded and nothing else") {
    val seals = new BatchSeals(100)
    seals.seal(pending(0, "1", 7))
    seals.seal(pending(1, "1", 8))
    seals.seal(inline(2, "held by the driver"))
    seals.report(UploadReport("1", 8, Right(place(80))))
    val settled = seals.whenSettled(seals.close(0))
    assert(!settled.isDone)
    seals.executorLost("1", "it is gone")
    assert(settled.isDone)
    val outcome = resolved(seals)
    assert(outcome(0).swap.exists(_.contains("it is gone")))
    assert(outcome(1) == Right(Seq(Right(place(80)))))
    assert(outcome(2) == Right(Seq(Left("held by the driver"))))
  }

  test("an earlier attempt that is durable stands in for a later one that was lost") {
    val seals = new BatchSeals(100)
    seals.seal(inline(0, "first"))
    seals.seal(pending(0, "1", 7))
    seals.executorLost("1", "it is gone")
    assert(seals.whenSettled(seals.close(0)).isDone)
    assert(resolved(seals) == Map(0 -> Right(Seq(Left("first")))))
  }

  test("inline bytes are bounded, and what is committed makes room") {
    val seals = new BatchSeals(10)
    assert(seals.seal(inline(0, "12345678")) == SealReply.Accepted)
    assert(seals.seal(inline(1, "123")) == SealReply.OverBudget)
    assert(seals.seal(pending(1, "1", 1)) == SealReply.Accepted)
    assert(seals.inlineBytes == 8)
    seals.forget(0)
    assert(seals.inlineBytes == 0)
    assert(seals.seal(inline(1, "123", version = 2)) == SealReply.Accepted)
  }

  test("files that only losing attempts name are unused") {
    val seals = new BatchSeals(100)
    seals.seal(SealRequest("1", key(0), Vector(SealedPart.Stored(place(0)))))
    seals.seal(SealRequest("1", key(0), Vector(SealedPart.Stored(SegmentPart(Some("data/run/other"), 0, 10, 7)))))
    assert(resolved(seals)(0) == Right(Seq(Right(SegmentPart(Some("data/run/other"), 0, 10, 7)))))
    assert(seals.unusedFiles(0, Set("data/run/other")) == Set("data/run/file"))
  }
}
