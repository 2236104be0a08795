// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.SegmentPart

class FileRangeSuite extends AnyFunSuite {
  private val MiB = 1024 * 1024

  private def part(offset: Long, length: Int, file: String = "f") = SegmentPart(Some(file), offset, length, 0)

  test("adjacent parts of one file are read in one request, and parts of other files are not") {
    val near = Vector(part(300, 50), part(24, 100), part(200, 100))
    val others = Vector(part(24, 100, "g"), SegmentPart(None, 0, 10, 0))
    val ranges = FileRange.shared(near ++ others)
    assert(near.forall(of => ranges(of) == FileRange(Some("f"), 24, 326)))
    assert(others.forall(!ranges.contains(_)))
  }

  test("a range has a bounded length and few unwanted bytes") {
    val ranges = FileRange.shared(Vector(
      part(0, 3 * MiB),
      part(3 * MiB, MiB),
      part(4 * MiB, 10),
      part(4 * MiB + 10 + FileRange.MaxGap, 10),
      part(4 * MiB + 21 + 2 * FileRange.MaxGap, 10),
      part(20 * MiB, 5 * MiB),
      part(25 * MiB, 10)
    ))
    assert(ranges.values.toSet == Set(
      FileRange(Some("f"), 0, 4 * MiB),
      FileRange(Some("f"), 4 * MiB, 20 + FileRange.MaxGap)
    ))
    assert(ranges.size == 4)
  }

  test("overlapping parts are read correctly") {
    val outer = part(0, 100)
    val inner = part(10, 20)
    val last = part(60, 60)
    assert(FileRange.shared(Vector(inner, last, outer)).values.toSet == Set(FileRange(Some("f"), 0, 120)))
    assert(FileRange(Some("f"), 0, 120).cut(Array.tabulate(120)(_.toByte), inner).toSeq == (10 until 30).map(_.toByte))
  }
}
