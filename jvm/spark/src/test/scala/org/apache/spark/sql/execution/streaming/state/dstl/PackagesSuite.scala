// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.PackageCycles

/** The sources of all lines of Spark, not only of the one that is built. */
class PackagesSuite extends AnyFunSuite {
  private val Ours = "org.apache.spark.sql.execution.streaming.state.dstl"

  private val sources = {
    val folders = Files.list(Paths.get("src/main")).iterator.asScala.filter(_.getFileName.toString.startsWith("scala"))
    val all = folders.flatMap(PackageCycles.sources(_)).toVector
    all.groupMap(_._1)(_._2).map { case (of, texts) => of -> texts.flatten }.filter(_._1.startsWith(Ours))
  }

  test("no two packages depend on each other") {
    assert(sources.size > 6 && PackageCycles.in(sources) == Map.empty)
  }

  test("only classes that Spark creates access the environment") {
    val files = sources.iterator.filter(_._1 != s"$Ours.tools").filter(_._1 != Ours).flatMap(_._2)
    assert(!files.exists(_.contains("DstlEnvironment.get")))
  }
}
