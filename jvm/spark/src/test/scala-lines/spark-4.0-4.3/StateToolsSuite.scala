// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.io.{ByteArrayInputStream, File}
import java.net.{InetAddress, ServerSocket}
import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.Files

import scala.concurrent.{Await, Future}
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration.DurationInt
import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.arrow.vector.ipc.ArrowStreamReader

import sparkdstl.testing.{CountingFileSystem, Operation}

import org.apache.spark.SparkConf
import org.apache.spark.sql.execution.streaming.state.dstl.QuerySuite
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.util.Utils

/** The requests of programs that read a checkpoint's state. */
class StateToolsSuite extends QuerySuite {
  private val storage = "spark.hadoop." + CountingFileSystem.entry._1 -> CountingFileSystem.entry._2
  private val all = new StateSelection(null, null, null, null, null)
  private val newest = 2

  override protected def configuration: Map[String, String] = super.configuration + storage

  /** Runs a query that counts, for one batch. */
  private def count(name: String): Unit = {
    val input = numbers()
    complete(start(counts(input), name), input, 0 until 20)
  }

  private def batch(number: Int): StateBatch =
    new StateBatch(number.toLong, Files.readAllLines(checkpoint.resolve(s"offsets/$number")).get(1))

  /** Receives what is sent to a port. */
  private def content(send: Int => SentRows): String =
    Using.resource(new ServerSocket(0, 1, InetAddress.getLoopbackAddress)) { server =>
      val bytes = Future(Using.resource(server.accept())(_.getInputStream.readAllBytes()))
      assert(send(server.getLocalPort).failure() == null)
      new String(Await.result(bytes, 60.seconds), ISO_8859_1)
    }

  test("a read of state that fails closes its store") {
    count("counts")
    stopSpark()
    startSpark()
    Files.delete(checkpoint.resolve("commits/0"))
    val tools = new StateTools(s"counting://$checkpoint", Map(storage).asJava)
    for (read <- Seq(tools.state _, tools.changes _)) {
      val before = databases
      Using.resource(new ServerSocket(0, 1, InetAddress.getLoopbackAddress)) { server =>
        assert(read(batch(0), all, server.getLocalPort, "secret").failure() != null)
      }
      assert((databases -- before).isEmpty)
    }
  }

  /** The local directories of open stores. */
  private def databases: Set[String] =
    new File(Utils.getLocalDir(new SparkConf)).list().filter(_.startsWith("StateStore")).toSet

  test("the state of all stores is read with one request for each commit entry") {
    val (left, right) = (numbers(), numbers())
    val at = s"counting://$checkpoint"
    val query = start(left.toDF().join(right.toDF(), "value"), "joined", OutputMode.Append(), at)
    for (_ <- 0 to newest) {
      left.addData(0 until 20)
      right.addData(0 until 20)
      query.processAllAvailable()
    }
    query.stop()
    val tools = new StateTools(at, Map(storage).asJava)
    for (read <- Seq(tools.state _, tools.changes _)) {
      CountingFileSystem.reset()
      assert(content(read(batch(newest), all, _, "secret")).nonEmpty)
      val opened = CountingFileSystem.snapshot().pathsOf(Operation.Open).filter(_.getParent.getName == "commits")
      assert(opened.nonEmpty && opened.distinct == opened)
    }
  }

  test("a condition that depends on more than the row is refused, and calls no method of Java") {
    count("chosen")
    val tools = new StateTools(s"counting://$checkpoint", Map(storage).asJava)
    for (where <- Seq("rand() < 2", "java_method('java.lang.System', 'lineSeparator') is not null")) {
      val selection = new StateSelection(null, null, null, null, where)
      Using.resource(new ServerSocket(0, 1, InetAddress.getLoopbackAddress)) { server =>
        val failure = tools.state(batch(0), selection, server.getLocalPort, "secret").failure()
        assert(failure != null && failure.contains("depends on more than the row"), failure)
      }
    }
  }

  /** The JSON of the state of a join of a row with these columns: its stores have several schemas. */
  private def jsonOf(columns: String*): String = {
    val (left, right) = (numbers(), numbers())
    val query = start(left.toDF().selectExpr(columns: _*).join(right.toDF(), "value"), "joined", OutputMode.Append())
    right.addData(2)
    feed(query, left, Seq(1))
    query.stop()
    content(new StateTools(checkpoint.toString, Map.empty[String, String].asJava).state(batch(0), all, _, "secret"))
  }

  test("the JSON of rows of several schemas has microseconds and nulls") {
    val sent = jsonOf("value", "timestamp'2026-10-25 02:59:00.123456Z' AS at", "CAST(null AS int) AS none")
    assert(sent.contains(""""at":"2026-10-25T02:59:00.123456Z","none":null"""), sent)
  }

  test("columns of one name are numbered in the JSON of rows of several schemas, as Arrow has them") {
    val sent = jsonOf("value", "value + 1 AS other", "value + 2 AS other")
    assert(sent.contains(""""value":1,"other_0":2,"other_1":3"""), sent)
  }

  test("columns inside of a value may be null: a deletion has none") {
    count("nullable")
    val tools = new StateTools(checkpoint.toString, Map.empty[String, String].asJava)
    val sent = content(tools.changes(batch(0), all, _, "secret")).stripPrefix("secret").getBytes(ISO_8859_1)
    Using.resource(new ArrowStreamReader(new ByteArrayInputStream(sent), ArrowUtils.rootAllocator)) { reader =>
      val value = reader.getVectorSchemaRoot.getSchema.findField("value")
      assert(value.isNullable && value.getChildren.asScala.map(_.isNullable).toSeq == Seq(true), value)
    }
  }
}
