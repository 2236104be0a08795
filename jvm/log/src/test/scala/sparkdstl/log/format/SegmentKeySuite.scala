// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class SegmentKeySuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  import SegmentKind.{Changelog, Checksum}

  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 1000)

  test("the path of a key is the one that it was parsed from") {
    forAll(FormatSamples.segmentKey) { key =>
      assert(SegmentKey.parse(key.storeDirectory, key.fileName).contains(key))
      assert(key.relativePath == s"${key.storeDirectory}/${key.fileName}")
    }
  }

  test("different keys have different paths") {
    forAll(FormatSamples.segmentKey, FormatSamples.segmentKey) { (a, b) =>
      assert((a == b) == (a.relativePath == b.relativePath))
    }
  }

  test("the names of Spark's files are parsed") {
    val named = SegmentKey(1, 0, "left-keyToNumValues", 12, Some("5d8e"), Changelog)
    assert(SegmentKey.parse("0/3", "12.changelog").contains(SegmentKey(0, 3, "", 12, None, Changelog)))
    assert(SegmentKey.parse("0/3", "12.changelog.crc").contains(SegmentKey(0, 3, "", 12, None, Checksum)))
    assert(SegmentKey.parse("1/0/left-keyToNumValues", "12_5d8e.changelog").contains(named))
  }

  test("a changelog belongs to the batch before its version") {
    assert(SegmentKey(0, 0, "", 12, None, Changelog).batch == 11)
  }

  test("other files of a store are not segments") {
    val others = Seq("12.zip.crc", "12.delta", "12.zip.tmp", "12.changelog.tmp", ".12.changelog.crc", "_metadata")
    val noNumber = Seq("_a.changelog", "changelog", ".changelog", "-1.changelog", "1a.changelog", "٣.changelog")
    val odd = Seq("12.changelog.crc.crc", "12_.changelog", "12.CHANGELOG", " 12.changelog", "12.changelog\n")
    (others ++ noNumber ++ odd ++ Seq("12_a/b.changelog", "1234567890123456789.changelog")).foreach { name =>
      assert(SegmentKey.parse("0/0", name).isEmpty, name)
    }
  }

  test("only directories of stores hold segments") {
    val parts = Seq("", "0", "0/", "/0/0", "0/0/", "0//a", "0/0/a/b", "0/0/.", "0/0/..")
    val noNumber = Seq("a/0", "0/a", "-1/0", "0/_metadata", "0/1234567890")
    (parts ++ noNumber).foreach(directory => assert(SegmentKey.parse(directory, "1.changelog").isEmpty, directory))
  }

  test("a file name whose number has leading zeros is no segment") {
    Seq("0/0" -> "007", "0/0" -> "00", "00/0" -> "7", "0/01" -> "7").foreach { case (directory, number) =>
      assert(SegmentKey.parse(directory, s"$number.changelog").isEmpty)
    }
    assert(SegmentKey.parse("0/0", "0.changelog").nonEmpty)
  }
}
