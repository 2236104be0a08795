package sparkdstl.log.format

import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class SegmentKeySuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  import SegmentKind.{Changelog, Checksum}

  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 1000)

  test("a key's path is the one it was parsed from") {
    forAll(FormatSamples.segmentKey) { key =>
      assert(SegmentKey.parse(key.storeDirectory, key.fileName).contains(key))
      assert(key.relativePath == s"${key.storeDirectory}/${key.fileName}")
    }
  }

  test("keys are told apart by their paths") {
    forAll(FormatSamples.segmentKey, FormatSamples.segmentKey) { (a, b) =>
      assert((a == b) == (a.relativePath == b.relativePath))
    }
  }

  test("Spark's names are read") {
    assert(SegmentKey.parse("0/3", "12.changelog").contains(SegmentKey(0, 3, "", 12, None, Changelog)))
    assert(SegmentKey.parse("0/3", "12.changelog.crc").contains(SegmentKey(0, 3, "", 12, None, Checksum)))
    assert(
      SegmentKey.parse("1/0/left-keyToNumValues", "12_5d8e.changelog")
        .contains(SegmentKey(1, 0, "left-keyToNumValues", 12, Some("5d8e"), Changelog))
    )
  }

  test("a changelog belongs to the batch before its version") {
    assert(SegmentKey(0, 0, "", 12, None, Changelog).batch == 11)
  }

  test("other files of a store are not segments") {
    Seq(
      "12.zip.crc",
      "12.delta",
      "12.zip.tmp",
      "12.changelog.tmp",
      ".12.changelog.crc",
      "12.changelog.crc.crc",
      "12_.changelog",
      "_a.changelog",
      "changelog",
      ".changelog",
      "-1.changelog",
      "1a.changelog",
      "12.CHANGELOG",
      "12_a/b.changelog",
      " 12.changelog",
      "٣.changelog",
      "12.changelog\n",
      "1234567890123456789.changelog",
      "_metadata"
    ).foreach { name =>
      assert(SegmentKey.parse("0/0", name).isEmpty, name)
    }
  }

  test("directories that are not a store's hold no segments") {
    Seq(
      "",
      "0",
      "0/",
      "/0/0",
      "0/0/",
      "0/0/a/b",
      "a/0",
      "0/a",
      "-1/0",
      "0/_metadata",
      "0/0/.",
      "0/0/..",
      "0/1234567890",
      "0//a"
    ).foreach { directory =>
      assert(SegmentKey.parse(directory, "1.changelog").isEmpty, directory)
    }
  }

  test("a number with leading zeros is not the number, or two files would be one segment") {
    assert(SegmentKey.parse("0/0", "007.changelog").isEmpty)
    assert(SegmentKey.parse("0/0", "00.changelog").isEmpty)
    assert(SegmentKey.parse("00/0", "7.changelog").isEmpty)
    assert(SegmentKey.parse("0/01", "7.changelog").isEmpty)
    assert(SegmentKey.parse("0/0", "0.changelog").nonEmpty)
  }
}
