// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.operators

import org.apache.spark.sql.execution.streaming.state.dstl.{LoggedBatches, QuerySuite}

/** A stateful query with its state in the log, from the first batch to recovery. */
class MainLineSuite extends QuerySuite {
  for (format <- Seq("1", "2")) test(
    s"a query's changelogs are in the log, none is a file, and a restart continues from them, checkpoint format version $format"
  ) {
    configure(formatKey -> format)
    val input = numbers()
    complete(start(counts(input), "before"), input, 1 to 10, 11 to 20)
    val all = files()
    assert(all.filter(_.endsWith(".changelog")) == Nil)
    assert(all.filter(_.startsWith("dstl/data/")) == Nil)
    assert(all.filter(name => name.startsWith("commits/") && !name.contains(".")) == Seq("commits/0", "commits/1"))
    complete(start(counts(input), "after"), input, 21 to 30, 31 to 33)
    assert(rows("after") == counted(1 to 33))
    assert(LoggedBatches.of(checkpoint) == Set(0, 1, 2, 3))
  }
}
