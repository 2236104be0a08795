// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.file.Files

import sparkdstl.testing.{CountingFileSystem, Operation}

import org.apache.spark.sql.execution.streaming.state.dstl.{QuerySuite, SparkFacts}

/** The requests of a restarted query until its first commit entry. */
class StartRequestsSuite extends QuerySuite {
  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + CountingFileSystem.entry._1 -> CountingFileSystem.entry._2,
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h",
    option("upload.retryPolicy") -> "none"
  )

  private val batches = 10

  /** The requests until the first commit entry of a query that continues after so many batches, in a new Spark. */
  private def requestsOfRestart(): Seq[(Operation, String)] = {
    val before = numbers()
    val query = start(counts(before), "before", at = s"counting://$checkpoint")
    complete(query, before, (1 to batches).map(Seq(_)): _*)
    stopSpark()
    startSpark()
    val after = numbers()
    (1 to batches + 1).foreach(after.addData(_))
    CountingFileSystem.reset()
    complete(start(counts(after), "after", at = s"counting://$checkpoint"))
    assert(rows("after") == counted(1 to batches + 1))
    untilCommitOf(batches)
  }

  private def untilCommitOf(batch: Int): Seq[(Operation, String)] = {
    val (until, rest) = CountingFileSystem.snapshot().requests.map { case (operation, path) =>
      operation -> path.toUri.getPath.stripPrefix(s"$checkpoint/")
    }.span(_ != Operation.Write -> s"commits/$batch")
    assert(rest.nonEmpty)
    until
  }

  private def of(operation: Operation, requests: Seq[(Operation, String)]): Seq[String] =
    requests.collect { case (`operation`, path) => path }

  private def repeated(paths: Seq[String]): Seq[String] = paths.diff(paths.distinct).sorted

  test("a restart reads no file twice, and asks for no length that a listing has told") {
    val requests = requestsOfRestart()
    val text = requests.mkString("\n", "\n", "\n")
    // Driver and executors read apart, although they are one process here: both need the newest entry and the list of snapshots.
    assert(repeated(of(Operation.Open, requests)).forall(Set("commits/0", s"commits/${batches - 1}")), text)
    val checked = of(Operation.Head, requests).filterNot(_.endsWith(".zip")).toSet
    val byTask = if (SparkFacts.DriverReadsSchemas) Set.empty else Set("state/0/0/_metadata/schema")
    assert(checked == SparkFacts.CheckedOnTheUsersThread ++ byTask, text)
    assert(repeated(of(Operation.List, requests)) == Seq("commits", "offsets"), s"once more after the claim: $text")
  }

  test("a restart of a query without state reads the entries of its source once, and not what it has written") {
    val files = Files.createDirectories(directory.resolve("input"))
    def run(): Unit = complete(
      spark.readStream.option("maxFilesPerTrigger", 1).text(files.toString).writeStream.format("noop")
        .option("checkpointLocation", s"counting://$checkpoint").start()
    )
    (1 to 13).foreach(number => Files.write(files.resolve(s"$number.txt"), Array[Byte](1)))
    run()
    stopSpark()
    startSpark()
    Files.write(files.resolve("14.txt"), Array[Byte](1))
    CountingFileSystem.reset()
    run()
    val requests = untilCommitOf(13)
    val text = requests.mkString("\n", "\n", "\n")
    val ofSource = requests.filter(_._2.startsWith("sources"))
    assert(
      of(Operation.Open, ofSource).sorted == Seq("10", "11", "12", "9.compact").map("sources/0/" + _),
      text
    )
    assert(
      ofSource.map(_._1).filterNot(_ == Operation.Open) == Seq(Operation.List, Operation.List, Operation.Write),
      text
    )
    assert(of(Operation.Head, requests).toSet == SparkFacts.CheckedOnTheUsersThread, text)
  }

  for ((kind, id) <- Seq("longer" -> "  00000000-0000-0000-0000-000000000001", "shorter" -> "0-0-0-0-1"))
    test(s"metadata that is $kind than what Spark writes is read") {
      Files.createDirectories(checkpoint)
      Files.writeString(checkpoint.resolve("metadata"), s"""{"id":"${id.trim}"${id.takeWhile(_ == ' ')}}""")
      val input = numbers()
      input.addData(1)
      val query = start(counts(input), "after", at = s"counting://$checkpoint")
      complete(query)
      assert(query.id.toString == "00000000-0000-0000-0000-000000000001")
    }
}
