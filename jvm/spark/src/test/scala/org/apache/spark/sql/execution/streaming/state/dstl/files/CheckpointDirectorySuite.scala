// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.state.dstl.runtime.ProcessResources

class CheckpointDirectorySuite extends AnyFunSuite {
  test("executors name a checkpoint as its driver does, also one at the root of a bucket") {
    val resources = new ProcessResources(null)
    try
      for (root <- Seq("file:/", "file:/clicks", "file:/state/2024/06", "file:/two\nlines")) {
        val at = new Path(new Path(root), "state/0/1")
        val store = CheckpointDirectory.storeAt(at, new Configuration, resources, null).get
        assert(store.checkpoint.root.toString == new Path(new Path(root), "commits").getParent.toString)
        assert(store.directory == "0/1")
      }
    finally resources.close()
  }
}
