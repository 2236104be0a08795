// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.io.File
import java.util.concurrent.ThreadPoolExecutor

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions

import org.apache.spark.SparkConf
import org.apache.spark.util.Utils

class ProcessResourcesSuite extends AnyFunSuite {
  private def options(key: String, value: String): LogOptions = LogOptions.parse(Seq(LogOptions.Prefix + key -> value))

  test("limits of a process are the largest of its queries, also below the defaults") {
    val resources = new ProcessResources(null)
    try {
      val budget = resources.uploadBudget(options("upload.maxInFlight", "1m"))
      budget.acquire(1024 * 1024): Unit
      val second = budget.acquire(1).granted
      assert(!second.isCompleted)
      resources.uploadBudget(options("upload.maxInFlight", "2m")): Unit
      assert(second.isCompleted)

      def threads(number: Int) =
        resources.snapshotThreads(options("materialize.numThreads", s"$number")).asInstanceOf[ThreadPoolExecutor]
      assert(Seq(1, 3, 2).map(threads(_).getCorePoolSize) == Seq(1, 3, 3))
    } finally resources.close()
  }

  test("what was read to rebuild stores is kept in Spark's local directory until the end") {
    def caches: Set[String] = new File(Utils.getLocalDir(new SparkConf)).list().filter(_.startsWith("dstl-")).toSet
    val before = caches
    val resources = new ProcessResources(null)
    try {
      assert(resources.diskCache(LogOptions.default).nonEmpty)
      assert((caches -- before).size == 1)
    } finally resources.close()
    assert((caches -- before).isEmpty)
  }
}
