// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import sparkdstl.testing.CountingFileSystem

import org.apache.spark.sql.execution.streaming.state.dstl.{LoggedBatches, QuerySuite}

/** Checkpoints on a client that mounts other file systems: it answers for their paths, and for its own root it does not. */
class MountedSuite extends QuerySuite {
  private val link = "spark.hadoop.fs.viewfs.mounttable.mounts.link."

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + CountingFileSystem.entry._1 -> CountingFileSystem.entry._2,
    s"$link/user" -> directory.toUri.toString,
    s"$link/disk" -> directory.toUri.toString,
    s"$link/objects" -> s"${CountingFileSystem.Scheme}://$directory"
  )

  test("queries run and restart on a mounted disk, and beside it on a mounted object store") {
    for {
      batch <- 0 to 1
      (mount, renames) <- Seq("disk" -> true, "objects" -> false)
    } {
      val input = numbers()
      (0 to batch).foreach(input.addData(_))
      CountingFileSystem.reset()
      complete(start(counts(input), s"$mount$batch", at = s"viewfs://mounts/$mount/$mount"))
      assert(rows(s"$mount$batch") == counted(0 to batch))
      assert(LoggedBatches.of(directory.resolve(mount)) == (0L to batch.toLong).toSet)
      val written = CountingFileSystem.snapshot().written.map(_.getName)
      assert(written.contains(s"$batch") != renames, written)
    }
  }
}
