// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.scalatest.funsuite.AnyFunSuite

class RowSumSuite extends AnyFunSuite {

  private def row(family: Int = 0, key: Byte = 1, value: Byte = 2, at: Int = 0): WholeRow =
    new WholeRow(family, Array(key), Array(value), at)

  private def sum(rows: WholeRow*): RowSum = RowSum.during(rows.iterator)(_.foreach(_ => ()))

  test("the same rows in any order have the same sum") {
    assert(sum(row(), row(key = 5)) == sum(row(key = 5), row()))
  }

  test("a row of another column family, key, value or place among the values of its key has another sum") {
    val different = Seq(row(), row(family = 1), row(key = 3), row(value = 3), row(at = 1), row(key = 2, value = 1))
    assert(different.map(sum(_)).toSet.size == different.size)
  }

  test("a row that is there twice in place of another has another sum") {
    val other = row(key = 5)
    assert(sum(row(), row(), other) != sum(row(), other, other))
  }

  test("rows that were not taken are not in the sum") {
    assert(RowSum.during(Iterator(row(), row(key = 5)))(_.next(): Unit) == sum(row()))
  }
}
