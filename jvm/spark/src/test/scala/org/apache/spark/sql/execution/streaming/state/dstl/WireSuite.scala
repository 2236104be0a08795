package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format._

class WireSuite extends AnyFunSuite {
  private val key = SegmentKey(3, 14, "left-keyToNumValues", 15, Some(new UUID(1, 2).toString), SegmentKind.Checksum)
  private val part = SegmentPart(Some("data/run/file"), 1L << 40, 77, -5)

  test("a seal arrives as it was sent") {
    val request = SealRequest("7", key, Vector(SealedPart.Stored(part), SealedPart.Pending(9, 100)))
    assert(Wire.decodeSeal(Wire.encodeSeal(request)) == request)
    val inline = SealRequest("7", key, Vector(SealedPart.Inline(Array[Byte](1, 2, 3))))
    Wire.decodeSeal(Wire.encodeSeal(inline)).parts match {
      case Vector(SealedPart.Inline(bytes)) => assert(bytes.toSeq == Seq[Byte](1, 2, 3))
      case other => fail(s"$other")
    }
  }

  test("replies, reports and listings arrive as they were sent") {
    Seq(SealReply.Accepted, SealReply.OverBudget, SealReply.Refused("why")).foreach { reply =>
      assert(Wire.decodeSealReply(Wire.encodeSealReply(reply)) == reply)
    }
    val history = RunHistory.empty.append(3, new UUID(1, 1)).append(4, new UUID(2, 2))
    Seq(OpenReply.Unknown, OpenReply.Superseded, OpenReply.Current(history, 4)).foreach { reply =>
      assert(Wire.decodeOpenReply(Wire.encodeOpenReply(reply)) == reply)
    }
    Seq(UploadReport("1", 5, Right(part)), UploadReport("1", 5, Left("é" * 40000))).foreach { report =>
      assert(Wire.decodeReport(Wire.encodeReport(report)) == report)
    }
    val listing = Seq(ListedSegment("1.changelog", 2, 3))
    assert(Wire.decodeListing(Wire.encodeListing(listing)) == listing)
    val barrier = Some(BarrierReport(1, 2, 3, 4, 5))
    assert(Wire.decodeBarrier(Wire.encodeBarrier(barrier)) == barrier &&
      Wire.decodeBarrier(Wire.encodeBarrier(None)).isEmpty)
    assert(Wire.decodeKey(Wire.encodeKey(key)) == key)
  }

  test("what is not a message of ours is refused") {
    intercept[Exception](Wire.decodeSeal(Array[Byte](1, 2, 3)))
    intercept[IllegalArgumentException](Wire.decodeKey {
      val bytes = new java.io.ByteArrayOutputStream
      val out = new java.io.DataOutputStream(bytes)
      out.writeUTF("../../etc")
      out.writeUTF("1.changelog")
      bytes.toByteArray
    })
  }
}
