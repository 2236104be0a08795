// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.transport

import scala.util.{Failure, Success, Try}

import org.scalacheck.{Gen, Prop}
import org.scalacheck.Test.Parameters
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.{ByteEncoder, FormatSamples, SegmentKey, SegmentPart}
import sparkdstl.log.format.SegmentKind.{Snapshot, SnapshotFile}

class MessageCodecSuite extends AnyFunSuite {
  private val parameters = Parameters.default.withMinSuccessfulTests(300)

  private val bytes: Gen[Array[Byte]] =
    Gen.choose(0, 30).flatMap(Gen.containerOfN[Array, Byte](_, Gen.choose(Byte.MinValue, Byte.MaxValue)))
  private val integer = Gen.choose(Int.MinValue, Int.MaxValue)
  private val text = FormatSamples.text

  private val part: Gen[SegmentPart] =
    Gen.zip(Gen.option(text.filter(_.nonEmpty)), Gen.long, integer, integer).map((SegmentPart.apply _).tupled)

  private val sealedPart: Gen[SealedPart] = Gen.oneOf(
    bytes.map(SealedPart.Inline(_)),
    part.map(SealedPart.Stored(_)),
    Gen.zip(Gen.long, Gen.long).map { case (ticket, length) => SealedPart.Pending(ticket, length) }
  )

  // Only names that parse back to themselves: others are no files of Spark.
  private val segment: Gen[SealedSegment] = for {
    key <- FormatSamples.segmentKey.filter(key => SegmentKey.parse(key.storeDirectory, key.fileName).contains(key))
    base <- Gen.option(Gen.long)
    parts <- Gen.listOf(sealedPart)
  } yield SealedSegment(key, base, parts.toVector)

  private def many[T](of: Gen[T]): Gen[Vector[T]] = Gen.choose(0, 4).flatMap(Gen.listOfN(_, of)).map(_.toVector)

  /** A snapshot of the store of this partition that a seal of the batch may carry. */
  private def snapshot(batch: Long, partition: Int): Gen[Vector[SealedSegment]] = for {
    zip <- segment
    files <- many(segment)
  } yield {
    def durable(of: SealedSegment) = of.copy(parts = of.parts.filterNot(_.isInstanceOf[SealedPart.Pending]))
    val key = zip.key.copy(partition = partition, version = math.max(1L, batch), kind = Snapshot, qualifier = None)
    def named(of: SegmentKey) =
      of.copy(key.operator, key.partition, key.storeName, qualifier = Some("000012-a"), kind = SnapshotFile)
    durable(zip.copy(key = key)) +: files.map(of => durable(of.copy(key = named(of.key))))
  }

  private val seal: Gen[ToDriver.Seal] = for {
    attempt <- Gen.long
    batch <- Gen.choose(1L, 1000000L)
    segments <- many(segment)
    stores <- Gen.choose(0, 3)
    carried <- Gen.sequence[Vector[Vector[SealedSegment]], Vector[SealedSegment]](
      (0 until stores).map(snapshot(batch, _))
    )
  } yield ToDriver.Seal(attempt, batch, segments, carried.flatten)

  private val toDriver: Gen[ToDriver] = Gen.oneOf(
    Gen.const(ToDriver.Open),
    seal,
    Gen.zip(Gen.long, Gen.long).map((ToDriver.Withdraw.apply _).tupled),
    many(Gen.zip(Gen.long, Gen.either(text, part))).map(ToDriver.Uploaded(_)),
    many(Gen.zip(text, Gen.long)).map(ToDriver.Release(_)),
    text.map(ToDriver.ListStore(_)),
    text.map(ToDriver.Bypass(_))
  )

  private val barrier: Gen[BarrierReport] = Gen.zip(Gen.listOfN(8, Gen.long), integer, integer).map {
    case (longs, segments, snapshots) =>
      BarrierReport(longs(0), longs(1), longs(2), longs(3), longs(4), longs(5), longs(6), longs(7), segments, snapshots)
  }

  private val place: Gen[SnapshotPlace] =
    Gen.zip(Gen.long, Gen.option(text), Gen.long).map((SnapshotPlace.apply _).tupled)

  private val fromDriver: Gen[FromDriver] = Gen.oneOf(
    Gen.zip(
      Gen.long,
      Gen.long,
      Gen.long,
      many(Gen.zip(Gen.long, Gen.long)).map(_.toMap)
    ).map((FromDriver.Opened.apply _).tupled),
    Gen.oneOf(FromDriver.NotCoordinated, FromDriver.Superseded, FromDriver.OverBudget, FromDriver.Noted),
    Gen.zip(Gen.option(barrier), many(Gen.zip(text, many(text)))).map((FromDriver.Accepted.apply _).tupled),
    Gen.zip(text, many(text)).map((FromDriver.Refused.apply _).tupled),
    Gen.oneOf(true, false).map(FromDriver.Withdrawal(_)),
    Gen.zip(many(Gen.long), many(place), Gen.long, Gen.long).map((FromDriver.Versions.apply _).tupled),
    many(Gen.long).map(FromDriver.Unwanted(_)),
    Gen.zip(text, text).map((FromDriver.NotPlanned.apply _).tupled)
  )

  private val toExecutor: Gen[ToExecutor] = Gen.oneOf(
    Gen.const(ToExecutor.Flush),
    Gen.zip(Gen.long, many(text)).map((ToExecutor.Drop.apply _).tupled)
  )

  /** The message in a form that can be compared, which arrays cannot. */
  private def comparable(message: Any): Any = message match {
    case array: Array[Byte] => array.toSeq
    case product: Product => (product.getClass, product.productIterator.map(comparable).toList)
    case list: Iterable[_] => list.map(comparable).toList
    case other => other
  }

  private def check(prop: Prop): Assertion = {
    val checked = org.scalacheck.Test.check(parameters, prop)
    assert(checked.passed, checked.status.toString)
  }

  private def refuses(decode: => Any): Boolean = Try(decode) match {
    case Failure(_: IllegalArgumentException) => true
    case Failure(error) => throw error
    case Success(_) => false
  }

  /** Decodes what was encoded, and refuses a shorter or a longer message. */
  private def checkAll[T](messages: Gen[T])(encode: T => Array[Byte])(decode: Array[Byte] => T): Assertion = {
    check(Prop.forAll(messages)(message => comparable(decode(encode(message))) == comparable(message)))
    check(Prop.forAll(messages, Gen.choose(0.0, 1.0)) { (message, share) =>
      val encoded = encode(message)
      refuses(decode(encoded.take((encoded.length * share).toInt.min(encoded.length - 1)))) &&
      refuses(decode(encoded :+ 0.toByte))
    })
  }

  test("all messages and answers are read back as written") {
    checkAll(toDriver)(MessageCodec.encode(_))(MessageCodec.decodeToDriver)
    checkAll(fromDriver)(MessageCodec.encode(_))(MessageCodec.decodeFromDriver)
    checkAll(toExecutor)(MessageCodec.encode(_))(MessageCodec.decodeToExecutor)
  }

  test("bytes that are no message are refused with the documented error") {
    check(Prop.forAll(bytes) { garbage =>
      Seq(MessageCodec.decodeToDriver _, MessageCodec.decodeFromDriver _, MessageCodec.decodeToExecutor _)
        .foreach(decode => refuses(decode(garbage)))
      true
    })
  }

  test("a message with one changed byte is read or refused with the documented error") {
    check(Prop.forAll(toDriver, Gen.choose(0.0, 0.999), Gen.choose(1, 255)) { (message, share, change) =>
      val encoded = MessageCodec.encode(message)
      val at = (encoded.length * share).toInt
      encoded(at) = (encoded(at) ^ change).toByte
      refuses(MessageCodec.decodeToDriver(encoded)): Unit
      true
    })
  }

  test("counts and lengths beyond the message's size allocate no memory") {
    def announcing(code: Int, count: Long): Array[Byte] = {
      val out = new ByteEncoder
      out.byte(code)
      out.number(count)
      out.result ++ new Array[Byte](20)
    }
    for (count <- Seq(Long.MaxValue, Int.MaxValue.toLong, 1000000L)) {
      Seq(3, 4, 5).foreach(code => assert(refuses(MessageCodec.decodeToDriver(announcing(code, count)))))
      Seq(7, 9).foreach(code => assert(refuses(MessageCodec.decodeFromDriver(announcing(code, count)))))
    }
  }
}
