// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.io.{ByteArrayInputStream, InputStream}
import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}

import scala.io.Source

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import sparkdstl.log.error.{DamagedLogException, DstlException}
import sparkdstl.log.format.FormatSamples._
import sparkdstl.log.storage.ObjectTail

/** Commit entries: Spark reads its lines, the log reads its index, and damage is detected. */
class CommitEntrySuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  private val spark = "v1\n{\"nextBatchWatermarkMs\":0}"
  private val random = new scala.util.Random(7)

  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 200, sizeRange = 20)

  private def encode(segments: CommittedSegment*): Array[Byte] = encodeAfter(spark, segments: _*)

  private def encodeAfter(spark: String, segments: CommittedSegment*): Array[Byte] =
    CommitEntry.encode(spark.getBytes(UTF_8), batch, link, writer, None, segments.toVector).payload.toArray

  private def someSegment: CommittedSegment = CommittedSegment(key(), 5, Vector(Left(ascii("changes"))))

  /** Reads an entry as Spark's CommitLog does. */
  private def sparkReads(in: InputStream): (String, String) = {
    val lines = Source.fromInputStream(in, "UTF-8").getLines()
    assert(lines.hasNext)
    val version = lines.next()
    assert(lines.hasNext)
    (version, lines.next())
  }

  test("an entry that is read whole has Spark's lines as they were written, and the checksum of the batch's offsets") {
    val offsets = Some(Checksums.of(ascii("v1\n{}")))
    val lines = ascii(spark)
    val content =
      CommitEntry.encode(lines, batch, link, writer, None, Vector(someSegment), offsets = offsets).payload.toArray
    val (index, logStart) = readEntry(content)
    assert(index.spark.contains(SparkChecksums(Checksums.of(content, 0, logStart.toInt), offsets)))
    (0 until logStart.toInt).foreach { at =>
      val damaged = content.clone()
      damaged(at) = (damaged(at) ^ 1).toByte
      val error = intercept[DamagedLogException](readEntry(damaged))
      assert(error.getMessage.contains("Spark's lines"))
    }
  }

  test("every entry is read back as written, and its inline parts pass verification") {
    forAll(entry) { case (batch, link, by, base, segments) =>
      val encoded = CommitEntry.encode(spark.getBytes(UTF_8), batch, link, by, base, segments)
      val content = encoded.payload.toArray
      val path = new Path(s"/c/commits/$batch")
      val (index, logStart) = readEntry(content, path)
      assert(index == encoded.index)
      assert((index.batch, index.link, index.writer, index.base) == ((Some(batch), Some(link), by, base)))
      assert(CommitEntry.entryId(path, whole(content)).contains(link.entry))
      val asked = segments.iterator.map(segment => segment.key -> segment).toMap
      assert(index.entries.map(_.key).toSet == asked.keySet && index.entries.size == asked.size)
      for (entry <- index.entries; (part, number) <- entry.parts.zipWithIndex) {
        assert(entry.attempt == asked(entry.key).attempt)
        asked(entry.key).parts(number) match {
          case Right(stored) => assert(part == stored)
          case Left(bytes) =>
            val from = (logStart + part.offset).toInt
            val read = content.slice(from, from + part.length)
            assert(read.sameElements(bytes))
            LogFileReader.verify(path, entry.key, part, read)
        }
      }
    }
  }

  test("encoding an entry does not copy its inline bytes") {
    val bytes = ascii("changes")
    val segment = CommittedSegment(key(), 5, Vector(Left(bytes)))
    val payload = CommitEntry.encode(ascii(spark), batch, link, writer, None, Vector(segment)).payload
    assert(payload.parts.exists(_ eq bytes))
  }

  test("exactly 2,048 ASCII bytes stand between the second line and the log, unless the note needs more") {
    val content = encode(someSegment)
    val log = content.indexOfSlice(LogFile.HeaderMagic)
    val second = spark.drop(2)
    val end = content.indexOfSlice(ascii(second)) + second.length
    val between = content.slice(end + 1, log)
    assert(between.length == 2048 && content(end) == '\n')
    assert(between.forall(_ >= 0) && between.last == '\n' && between.count(_ == '\n') == 1)
    val long = CommitEntry.encode(ascii(spark), batch, link, writer.copy(host = "h" * 5000), None, Vector.empty)
    assert(long.payload.parts.head.length > 5000 && long.payload.parts.head.length < 5500)
  }

  test("the note names the writer of the entry in ASCII") {
    val by = writer.copy(host = "Müller☃\n")
    val entry = CommitEntry.encode(
      ascii(spark),
      batch,
      EntryLink(someEntry, Some(someRun)),
      by,
      Some("s3a://b/ü"),
      Vector.empty
    )
    val line = new String(entry.payload.parts.head, US_ASCII).split('\n')(2)
    assert(line.startsWith("{\"dstl\":2,"))
    val note = new ObjectMapper().readTree(line)
    assert(note.get("run").textValue == someRun.toString && note.get("epoch").longValue == 3)
    assert(note.get("entry").textValue == someEntry.toString && note.get("previous").textValue == someRun.toString)
    assert(note.get("host").textValue == by.host && note.get("application").textValue == by.application)
    assert(note.get("batch").longValue == batch && note.get("base").textValue == "s3a://b/ü")
  }

  test("Spark's lines stay unchanged, with and without a final line end") {
    Seq(spark, spark + "\n", spark + "\r\n").foreach { content =>
      assert(new String(encodeAfter(content), UTF_8).startsWith(spark + "\n{\"dstl\""))
      assert(new String(CommitEntry.forSpark(encodeAfter(content, someSegment)), UTF_8) == spark)
    }
    Seq("", "v1", "v1\n{}\n{}").foreach(content => intercept[IllegalArgumentException](encodeAfter(content)))
  }

  test("only if the state needs the log does the version name the setting without which a query must not start") {
    val guarded = encode(someSegment)
    val off = CommitEntry.encode(ascii(spark), batch, link, writer, None, Vector.empty, needsLog = true).payload.toArray
    assert(Seq(guarded, off).forall(CommitEntry.needsLog))
    assert(off.startsWith(guarded.takeWhile(_ != '\n')))
    val (version, second) = sparkReads(new ByteArrayInputStream(guarded))
    assert(version.startsWith("v1 ") && version.contains(" spark.sql.streaming.checkpointFileManagerClass=org.apache."))
    assert(second == spark.drop(3))
    val others = Seq(encode(), ascii(spark), ascii("v1\n{\"a b\": 1}\n{\"repartition\": 1}"))
    others.foreach { content =>
      assert(CommitEntry.forSpark(content) sameElements content)
      assert(!CommitEntry.needsLog(content))
    }
  }

  private val edges = for (block <- Seq(2048, 8192); times <- Seq(1, 2, 3, 4, 5); near <- -70 to 70 by 2)
    yield block * times + near

  test("Spark reads its lines at any length and before any bytes") {
    val lengths = (30 to 300 by 5) ++ edges ++ Seq.fill(60)(300 + random.nextInt(200000))
    val tails = Vector.fill(8)(randomBytes(random, 300000))
    lengths.distinct.foreach { length =>
      val text = "{" + "x" * (length - 2) + "}"
      val segment = CommittedSegment(key(), 5, Vector(Left(tails(random.nextInt(tails.size)))))
      val content = encodeAfter(s"v1\n$text", segment)
      withClue(s"a second line of $length bytes: ") {
        assert(sparkReads(new ByteArrayInputStream(content))._2 == text)
        assert(sparkReads(new Trickle(content))._2 == text)
        assert(sparkReads(new ByteArrayInputStream(CommitEntry.forSpark(content))) == (("v1", text)))
      }
    }
  }

  test("Spark reads its lines when they are not ASCII") {
    val tail = randomBytes(random, 300000)
    for (length <- edges.filter(_ % 8 == 2)) {
      val text = "{" + Seq("é", "☃", "😀")(length % 3) * (length / 2) + "}"
      val content = encodeAfter(s"v2\n$text", CommittedSegment(key(), 5, Vector(Left(tail))))
      assert(sparkReads(new ByteArrayInputStream(content))._2 == text)
      assert(sparkReads(new ByteArrayInputStream(CommitEntry.forSpark(content))) == (("v2", text)))
    }
  }

  test("without the padding Spark fails to read its lines") {
    val text = "{" + "x" * 100 + "}"
    val bad = Array.fill[Byte](300000)(-1)
    intercept[java.nio.charset.MalformedInputException](
      sparkReads(new ByteArrayInputStream(ascii(s"v1\n$text\n") ++ Array.fill[Byte](1000)(' ') ++ bad))
    )
  }

  /** Returns its content in pieces of odd sizes, as a network does. */
  private final class Trickle(content: Array[Byte]) extends InputStream {
    private val in = new ByteArrayInputStream(content)
    override def read(): Int = in.read()
    override def read(bytes: Array[Byte], offset: Int, length: Int): Int =
      in.read(bytes, offset, math.min(length, 1 + random.nextInt(3000)))
    override def available(): Int = if (random.nextBoolean()) 0 else in.available()
  }

  test("an entry of stock Spark is plain") {
    Seq(spark, spark + "\n", "v1\n{}", "v2\n{\"stateUniqueIds\":{}}", "v1\n{}\n\n").foreach { content =>
      assert(CommitEntry.inspect(file, whole(ascii(content))) == EntryInspection.Plain)
      assert(CommitEntry.entryId(file, whole(ascii(content))).isEmpty)
    }
  }

  test("the entry of a repartition is plain, and has the offsets of its batch") {
    val note = """{"repartition": 1, "partitions": 3, "offsets": "v1\n{}\nthe rest"}"""
    val entry = ascii(s"$spark\n$note\n")
    assert(CommitEntry.inspect(file, whole(entry)) == EntryInspection.Plain)
    assert(CommitEntry.offsetsOfRepartition(entry).map(new String(_, UTF_8)).contains("v1\n{}\nthe rest"))
    val others = Seq("", "\n{}", s"\n${note.take(30)}", "\n" + """{"repartition": 1, "offsets": 2}""")
    others.foreach(other => assert(CommitEntry.offsetsOfRepartition(ascii(spark + other)).isEmpty))
    assert(CommitEntry.offsetsOfRepartition(encode(someSegment)).isEmpty)
  }

  test("an entry without Spark's two lines is damaged: it was emptied, or cut off in the first") {
    Seq("", "v", "v1", "v1\n", "\n{}", "x1\n{}").foreach { content =>
      intercept[DamagedLogException](CommitEntry.inspect(file, whole(ascii(content))))
    }
  }

  test("an entry with segments that is cut off anywhere, and one without behind its second line, is damaged") {
    val content = encode(someSegment, CommittedSegment(key(partition = 1), 6, Vector(Left(randomBytes(random, 500)))))
    val empty = encode()
    val cut = (0 until content.length).map(content.take) ++ (spark.length + 2 until empty.length).map(empty.take)
    cut.foreach { content =>
      withClue(s"the first ${content.length} bytes: ") {
        intercept[DamagedLogException](CommitEntry.inspect(file, whole(content)))
      }
    }
  }

  test("a tail without a trailer requests the whole entry, unless that is too large") {
    def inspect(length: Long) = CommitEntry.inspect(file, ObjectTail(Array.fill[Byte](100)('x'), length))
    assert(inspect(101) == EntryInspection.NeedsTail(101))
    assert(inspect(256L << 20) == EntryInspection.NeedsTail(256 << 20))
    assert(intercept[DstlException](inspect((256L << 20) + 1)).condition == "DSTL_LOG_TOO_LARGE")
  }

  test("a tail requests exactly the part of the entry's end that holds the index") {
    val content = encode((0 until 100).map(n => CommittedSegment(key(n), n.toLong, Vector(Left(ascii("x"))))): _*)
    def inspect(size: Int) = CommitEntry.inspect(file, ObjectTail(content.takeRight(size), content.length.toLong))
    val EntryInspection.NeedsTail(needed) = inspect(LogFile.TrailerLength): @unchecked
    val all = inspect(content.length)
    for (size <- LogFile.TrailerLength to content.length)
      assert(inspect(size) == (if (size < needed) EntryInspection.NeedsTail(needed) else all))
    assert(inspect(LogFile.TrailerLength - 1) == EntryInspection.NeedsTail(content.length))
  }

  test("an entry under another batch's name is damaged") {
    val content = encode(someSegment)
    Seq("8", "07", "7.tmp", "copy").foreach { name =>
      val error = intercept[DamagedLogException](CommitEntry.inspect(new Path(s"/c/commits/$name"), whole(content)))
      assert(error.getMessage.contains("the entry of batch 7"))
    }
  }

  test("an entry whose trailer names another id than its index is damaged") {
    val body = IndexCodec.encode(entryIndex())
    val stored = LogFileWriter.pack(body)
    val trailer =
      LogTrailer(24L + stored.length + 68, 24, stored.length, body.length, Checksums.of(stored), someRun, 1)
    intercept[DamagedLogException](readEntry(LogFileWriter.header(1) ++ stored ++ trailer.bytes))
  }

  test("the checkpoint ids of an entry come from Spark's second line") {
    val json = """{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["a","b"],["c","d"]],"12":[["e"]]}}"""
    val expected = Seq((0L, 0, "a"), (0L, 0, "b"), (0L, 1, "c"), (0L, 1, "d"), (12L, 0, "e"))
    assert(SparkEntry.checkpointIds(file, ascii(s"v2\n$json")) == expected)
    assert(SparkEntry.checkpointIds(file, encodeAfter(s"v2\n$json", someSegment)) == expected)
    assert(SparkEntry.checkpointIds(file, ascii(spark)).isEmpty)
    Seq("", "v1", "v1\n{", "v1\nx", "v2\n{\"stateUniqueIds\":{\"a\":[[\"b\"]]}}").foreach { content =>
      intercept[DamagedLogException](SparkEntry.checkpointIds(file, ascii(content)))
    }
  }
}
