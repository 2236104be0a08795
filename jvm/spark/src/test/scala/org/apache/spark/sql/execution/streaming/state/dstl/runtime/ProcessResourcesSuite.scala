// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.io.File

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions

import org.apache.spark.SparkConf
import org.apache.spark.util.Utils

class ProcessResourcesSuite extends AnyFunSuite {
  test("what was read to rebuild stores is kept in Spark's local directory") {
    def caches: Set[String] = new File(Utils.getLocalDir(new SparkConf)).list().filter(_.startsWith("dstl-")).toSet
    val before = caches
    val resources = new ProcessResources(null)
    try {
      assert(resources.diskCache(LogOptions.default).nonEmpty)
      assert((caches -- before).size == 1)
    } finally resources.close()
  }
}
