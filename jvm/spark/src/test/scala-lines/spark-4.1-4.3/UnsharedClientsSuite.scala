// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.execution.streaming.state.dstl.QuerySuite
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.ClosableFileSystem

/** A file system that Hadoop does not share in the process. */
class UnsharedClientsSuite extends QuerySuite {
  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + ClosableFileSystem.entry._1 -> ClosableFileSystem.entry._2,
    "spark.hadoop.fs.closable.impl.disable.cache" -> "true"
  )

  /** The clients that a query of so many stores makes. */
  private def clients(stores: Int): Int = {
    spark.conf.set("spark.sql.shuffle.partitions", stores.toString)
    val before = ClosableFileSystem.made.get
    val input = numbers()
    input.addData(1 to 100)
    complete(start(counts(input), s"of$stores", at = s"closable://${directory.resolve(s"of$stores")}"))
    ClosableFileSystem.made.get - before
  }

  test("a store adds no file-system client but that of Spark's file manager") {
    val few = clients(2)
    val many = clients(6)
    assert(many - few <= 4, s"$few of 2 stores, $many of 6")
  }

  test("a restart adds no client but those of Spark's file managers") {
    clients(2): Unit
    ClosableFileSystem.makers.clear()
    assert(clients(2) > 0)
    assert(!ClosableFileSystem.makers.asScala.exists(_.contains("dstl")), ClosableFileSystem.makers)
  }
}
