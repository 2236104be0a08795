// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.streaming.StreamingQueryException

import sparkdstl.testing.LookingFirstFileSystem

/** Queries on storage whose client checks for an object and then overwrites it. */
class NotExclusiveSuite extends ComparisonSuite {
  private val operator = Operator.totals

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + LookingFirstFileSystem.entry._1 -> LookingFirstFileSystem.entry._2
  )

  private def playing(contender: Contender): Playing = {
    val at = fresh("unconditional")
    new Playing(operator, contender, at, Some(s"${LookingFirstFileSystem.Scheme}://$at"))
  }

  test("a query on storage without exclusive creation warns once per run, and its state survives a restart") {
    val expected = expectedOf(operator)
    val query = playing(ours)
    val said = Warnings.during {
      query.play(batches.take(2))
      query.play(batches.drop(2))
    }.filter(_.contains("does not create objects exclusively"))
    assert(query.output == expected.batches)
    assert(said.size == 2 && said.forall(_.contains("storage.requireExclusiveCreate=true")), said)
    assert(files(query.checkpoint).forall(!_.endsWith(".trial")))
  }

  test("storage without exclusive creation is refused if exclusive creation is required") {
    val query = playing(ours.and(option("storage.requireExclusiveCreate") -> "true").named("careful"))
    val error = intercept[StreamingQueryException](query.play(batches.take(1)))
    assert(error.getMessage.contains("DSTL_NOT_EXCLUSIVE"), error)
    assert(LoggedBatches.of(query.checkpoint) == Set.empty)
  }
}
