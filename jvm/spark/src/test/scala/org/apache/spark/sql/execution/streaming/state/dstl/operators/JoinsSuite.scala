// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.operators

import org.apache.spark.sql.execution.streaming.state.dstl.{ComparisonSuite, Joins, Operator, SparkFacts}

/** Stream-stream joins of every kind and in every state format have the same results as with stock Spark, across a restart. */
class JoinsSuite extends ComparisonSuite {

  /** The formats in which a join may have any kind. */
  private val ofAnyKind = SparkFacts.JoinFormats.filter(_ > 1)

  private def operator(version: Int, kind: String): Operator =
    Operator(kind, Joins.join(kind), configuration = Joins.format(version), state = Joins.state, readsBoth = true)

  for {
    version <- SparkFacts.JoinFormats
    (kind, index) <- Joins.kinds.zipWithIndex
    if version > 1 || !kind.contains("_")
    // The kind concerns the operator, the format its stores: each kind with one format, and the first kind with all.
    if isWhole || index == 0 || version == ofAnyKind(index % ofAnyKind.size)
    checkpointFormat = 1 + (version + index) % 2
    third = if (isWhole || index == 0) Seq(below) else Nil
  } test(s"$kind join in state format version $version is the same with the state in the log") {
    compare(operator(version, kind), inFormat(checkpointFormat, Seq(stock, ours) ++ third: _*)): Unit
  }

  test("Spark refuses state format version 1 with the same error whether or not the state is in the log") {
    SparkFacts.RefusedInJoinFormat1.foreach { kind =>
      val errors = Seq(stock, ours, below).map { contender =>
        val playing = new Playing(operator(1, kind), contender, directory.resolve(s"${contender.name}-1-$kind"))
        failure(playing.play(batches.take(1))).linesIterator.map(_.replaceAll(
          ".*terminated with exception: ",
          ""
        )).next()
      }
      assert(errors.distinct.size == 1 && errors.head.matches(SparkFacts.RefusalOfJoinFormat1), errors)
    }
  }
}
