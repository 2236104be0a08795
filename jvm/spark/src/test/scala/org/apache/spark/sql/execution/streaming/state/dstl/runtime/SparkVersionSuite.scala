// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.state.dstl.{DstlRelease, Warnings}

class SparkVersionSuite extends AnyFunSuite {

  /** The verdict on a version, and the warnings with it. */
  private def judged(version: String): (Option[Throwable], Seq[String]) = {
    var verdict = Option.empty[Throwable]
    val warnings = Warnings.during { verdict = SparkVersion.judge(version) }
    (verdict, warnings)
  }

  test("a jar accepts the Spark that it was compiled against, without a warning") {
    assert(org.apache.spark.SPARK_VERSION == BuiltFor.Version)
    assert(judged(BuiltFor.Version) == (None, Nil))
    assert(DstlRelease.mismatch() == null)
  }

  test("a jar refuses another minor release of Spark, and names the jar for that") {
    Seq("3.4.3", "4.20.0", "5.0.0", s"${BuiltFor.Line}0.1").foreach { version =>
      val error = SparkVersion.judge(version).get.getMessage
      assert(error.contains(s"runs in Spark $version") && error.contains(s"for Spark ${BuiltFor.Line}"), error)
    }
  }

  test("a jar accepts another patch release with a warning") {
    val version = s"${BuiltFor.Line}.99"
    val (verdict, warnings) = judged(version)
    assert(
      verdict.isEmpty && warnings.exists(line => line.contains(version) && line.contains(BuiltFor.Version)),
      warnings
    )
  }
}
