// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.checkpoints

import java.io.File

import org.apache.hadoop.fs.{Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.security.AccessControlException
import org.scalatest.Assertion

import sparkdstl.testing.LocalFiles

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.streaming.state.dstl._

/**
 * A checkpoint whose empty directories are gone, as after a copy by a tool that copies objects. The log leaves the
 * directories of partitions empty, and Spark's state reader finds partitions by them.
 */
class CopiedCheckpointSuite extends QuerySuite with Patience {
  import CopiedCheckpointSuite._

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.sql.shuffle.partitions" -> Partitions.toString,
    "spark.hadoop.fs.readonly.impl" -> classOf[ReadOnlyFileSystem].getName
  )

  override def beforeEach(): Unit = {
    ReadOnlyFileSystem.refuses = false
    super.beforeEach()
  }

  private def run(batches: Int, at: String = checkpoint.toString): Unit = {
    val input = numbers()
    (1 to batches).foreach(_ => input.addData(0 until Keys))
    val query = start(input.toDF().groupBy("value").count(), s"after$batches", at = at)
    complete(query)
  }

  /** Runs a batch, and removes empty directories. */
  private def copied(): Assertion = {
    run(1)
    removeEmpty(checkpoint.toFile)
    assert(partitions == Set("0"), "the copy is not as an object store's")
  }

  /** Deletes the directories without files: Java deletes only empty ones. */
  private def removeEmpty(directory: File): Unit = {
    directory.listFiles().filter(_.isDirectory).foreach(removeEmpty)
    directory.delete(): Unit
  }

  private def partitions: Set[String] = checkpoint.resolve("state/0").toFile.list().filter(_.forall(_.isDigit)).toSet

  private def all: Set[String] = (0 until Partitions).map(_.toString).toSet

  private def read(
      session: SparkSession = spark.newSession(),
      at: String = checkpoint.toString,
      options: Map[String, String] = Map.empty
  ): Seq[String] = StoredStateShims.read(session, at, options)

  for ((what, options) <- Seq("the newest batch" -> Map.empty[String, String], "a batch" -> Map("batchId" -> "0")))
    test(s"a reader of $what finds every partition that the log has, and creates the directories") {
      copied()
      assert(read(options = options).size == Keys)
      assert(partitions == all)
    }

  test("a reader of a batch without the file manager fails, and names it") {
    copied()
    val session = spark.newSession()
    session.conf.unset(fileManagerKey)
    val error = messages(intercept[Exception](read(session, options = Map("batchId" -> "0"))))
    assert(error.contains(fileManagerKey), error)
    // Spark 4.0 reads no commit entry for that, but the tasks do. A second attempt of the task fails as well.
    if (spark.version.startsWith("4.0."))
      assert(error.contains("[DSTL_MISSING_PARTITIONS]") && error.contains("0/1, 0/2, 0/3"), error)
    else assert(error.contains(s"$fileManagerKey=${classOf[DstlCheckpointFileManager].getName}"), error)
    assert(partitions == Set("0"))
  }

  test("a reader that cannot create the directories fails, and names them") {
    copied()
    ReadOnlyFileSystem.refuses = true
    val error = messages(intercept[Exception](read(at = s"readonly://$checkpoint")))
    assert(error.contains("[DSTL_MISSING_PARTITIONS]") && error.contains("0/1, 0/2, 0/3"), error)
    assert(error.contains(ReadOnlyFileSystem.Refusal), error)
  }

  test("a start creates the directories") {
    copied()
    run(2)
    eventually { assert(partitions == all); () }
    assert(read().size == Keys)
  }

  test("a query without its directory of states continues with the log") {
    run(1)
    LocalFiles.delete(checkpoint.resolve("state"))
    run(2)
    assert(rows("after2") == (0 until Keys).map(key => s"[$key,2]").toSet)
    assert(partitions == all)
  }

  test("a start that cannot create the directories commits its batches") {
    copied()
    ReadOnlyFileSystem.refuses = true
    run(2, s"readonly://$checkpoint")
    assert(rows("after2").size == Keys && partitions == Set("0"))
  }

  test("a batch of plain files needs no directories of the log") {
    stopSpark()
    startSpark(option("enabled") -> "false")
    run(1)
    assert(read().size == Keys)
  }
}

private object CopiedCheckpointSuite {
  val Partitions = 4
  val Keys = 100
}

/** A local file system that can refuse to create the directories of all partitions except the first. */
class ReadOnlyFileSystem extends RawLocalFileSystem {
  override def getScheme: String = "readonly"
  override def getUri: java.net.URI = java.net.URI.create("readonly:///")

  override def mkdirs(path: Path): Boolean =
    if (ReadOnlyFileSystem.refuses && path.toString.matches(".*/state/0/[1-9]\\d*"))
      throw new AccessControlException(ReadOnlyFileSystem.Refusal)
    else super.mkdirs(path)

  override def mkdirs(path: Path, permission: FsPermission): Boolean = mkdirs(path)
}

object ReadOnlyFileSystem {
  val Refusal = "injected: read only"
  @volatile var refuses = false
}
