// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.checkpoints

import java.nio.file.{Files, Path => LocalPath}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.security.AccessControlException
import org.scalatest.Assertion

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.streaming.state.dstl._

/**
 * A checkpoint whose empty directories are gone, as after a copy by a tool that copies objects. The log leaves the
 * directories of partitions empty, and Spark's state reader finds partitions by them.
 */
class CopiedCheckpointSuite extends QuerySuite with Patience {
  import CopiedCheckpointSuite._

  private val fileManager = "spark.sql.streaming.checkpointFileManagerClass"

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
    removeEmptyDirectories()
    assert(partitions == Set("0"), "the copy is not as an object store's")
  }

  private def removeEmptyDirectories(): Unit = {
    val all = Files.walk(checkpoint)
    val directories =
      try all.iterator.asScala.filter(Files.isDirectory(_)).toVector.sortBy(-_.getNameCount)
      finally all.close()
    directories.filter(isEmpty).foreach(Files.delete)
  }

  private def isEmpty(directory: LocalPath): Boolean = {
    val content = Files.list(directory)
    try !content.iterator.hasNext
    finally content.close()
  }

  private def partitions: Set[String] = {
    val content = Files.list(checkpoint.resolve("state/0"))
    try content.iterator.asScala.map(_.getFileName.toString).filter(_.forall(_.isDigit)).toSet
    finally content.close()
  }

  private def all: Set[String] = (0 until Partitions).map(_.toString).toSet

  private def reader(fileManagerClass: Option[String]): SparkSession = {
    val session = spark.newSession()
    session.conf.unset(fileManager)
    fileManagerClass.foreach(session.conf.set(fileManager, _))
    session
  }

  private val withFileManager = Some(classOf[DstlCheckpointFileManager].getName)

  for ((what, options) <- Seq("the newest batch" -> Map.empty[String, String], "a batch" -> Map("batchId" -> "0")))
    test(s"a reader of $what finds every partition that the log has, and creates the directories") {
      copied()
      assert(StoredStateShims.read(reader(withFileManager), checkpoint.toString, options).size == Keys)
      assert(partitions == all)
    }

  test("a reader without the file manager fails, and names the partitions without a directory") {
    copied()
    val error = messages(intercept[Exception](StoredStateShims.read(reader(None), checkpoint.toString, Map.empty)))
    assert(error.contains("[DSTL_MISSING_PARTITIONS]") && error.contains("0/1, 0/2, 0/3"), error)
    // A second attempt of the task fails as well.
    assert(partitions == Set("0"))
  }

  test("a reader that cannot create the directories fails, and names them") {
    copied()
    ReadOnlyFileSystem.refuses = true
    val error = messages(intercept[Exception](
      StoredStateShims.read(reader(withFileManager), s"readonly://$checkpoint", Map.empty)
    ))
    assert(error.contains("[DSTL_MISSING_PARTITIONS]") && error.contains("0/1, 0/2, 0/3"), error)
    assert(error.contains(ReadOnlyFileSystem.Refusal), error)
  }

  test("a start creates the directories") {
    copied()
    run(2)
    eventually { assert(partitions == all); () }
    assert(StoredStateShims.read(reader(None), checkpoint.toString, Map.empty).size == Keys)
  }

  test("a query without its directory of states continues with the log") {
    run(1)
    val files = Files.walk(checkpoint.resolve("state"))
    try files.iterator.asScala.toVector.sortBy(-_.getNameCount).foreach(Files.delete)
    finally files.close()
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
    assert(StoredStateShims.read(reader(withFileManager), checkpoint.toString, Map.empty).size == Keys)
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
