// SPDX-License-Identifier: Apache-2.0
import sbt._
import sbt.Keys._

/** Runs Spark's own tests of streaming queries, as published on Maven Central, with their state in the log. */
object SparkSuites {
  val sparkTests = taskKey[Unit]("Runs Spark's tests of streaming queries with the log below them, in half an hour")

  private val Streaming = "org.apache.spark.sql.streaming"
  private val Execution = "org.apache.spark.sql.execution.streaming"
  private val Dstl = s"$Execution.state.dstl"

  private val withOurProvider = Seq(
    "EventTimeWatermark",
    "FileStreamSinkV1",
    "FileStreamSource",
    "FlatMapGroupsWithState",
    "FlatMapGroupsWithStateWithInitialState",
    "MultiStatefulOperators",
    "Stream",
    "StreamingAggregation",
    "StreamingDeduplication",
    "StreamingDeduplicationWithinWatermark",
    "StreamingFullOuterJoinWithVCF",
    "StreamingInnerJoinWithVCF",
    "StreamingLeftSemiJoinWithVCF",
    "StreamingOuterJoinWithVCF",
    "StreamingQuery",
    "StreamingQueryListener",
    "StreamingSessionWindow",
    "TriggerAvailableNow"
  ).map(name => s"$Streaming.${name}Suite") :+ s"$Execution.MicroBatchExecutionSuite"

  /** Their tests name Spark's RocksDB provider. */
  private val withStocksName = Seq(
    "RocksDBStateStoreFlatMapGroupsWithState",
    "RocksDBStateStoreStreamingAggregation",
    "RocksDBStateStoreStreamingDeduplication",
    "StreamingInnerJoinV4",
    "StreamingOuterJoinV4",
    "TransformWithListStateTTL",
    "TransformWithMapStateTTL",
    "TransformWithStateChaining",
    "TransformWithValueStateTTL",
    "TransformWithListState",
    "TransformWithMapState",
    "TransformWithStateUnsafeRow"
  ).map(name => s"$Streaming.${name}Suite")

  /** The beginnings of the names of tests that fail. */
  private val failing = Map(
    "flatMapGroupsWithState - initial state - processing time timeout - state format version 1" ->
      "fails with stock's RocksDB provider as well",
    "changing schema of state when restarting query - schema check off - state format version 1" ->
      "fails with stock's RocksDB provider as well",
    "test that introducing TTL after restart fails query" -> "fails with stock's RocksDB provider now and then",
    "Partition key extraction" -> "opens a store without the session's settings, and so without the log's file manager",
    "recover from a Spark v2.1 checkpoint" -> "the state is that of Spark's HDFS-backed provider",
    "SPARK-30143: stop waits until timeout if blocked" -> "expects that the query has its sources at once",
    "state data source integration - value state supports time travel" ->
      "commit entries that only the log needs count for minBatchId of state-metadata"
  )

  /** @param options of a JVM that runs Spark */
  def settings(options: Seq[String]): Seq[Def.Setting[_]] = Seq(
    publish / skip := true,
    scalaVersion := SparkLine.Default.scala,
    libraryDependencies ++= {
      val modules = Seq("sql", "catalyst", "core", "common-utils", "tags").map("spark-" + _)
      modules.map(of => ("org.apache.spark" %% of % SparkLine.Default.version).classifier("tests")) ++ Seq(
        "org.apache.spark" %% "spark-sql" % SparkLine.Default.version,
        "org.scalatest" %% "scalatest" % "3.2.19",
        "org.scalatestplus" %% "scalacheck-1-18" % "3.2.19.0",
        "org.scalatestplus" %% "mockito-5-12" % "3.2.19.0"
      )
    },
    sparkTests := {
      val log = streams.value.log
      val (tests, others) = (Compile / dependencyClasspath).value.files.partition { file =>
        file.getName.startsWith("spark-sql_") && file.getName.endsWith("-tests.jar")
      }
      val directory = target.value / "spark-tests"
      IO.delete(directory)
      val classes = directory / "classes"
      // Tests read their resources as files.
      tests.foreach(IO.unzip(_, classes))
      val classPath = (classes +: others).mkString(java.io.File.pathSeparator)
      def failedOf(name: String, provider: String, suites: Seq[String]): Seq[String] = {
        val work = directory / name
        IO.createDirectory(work / "tmp")
        val logging = work / "log4j2.properties"
        val appender = Seq("type = File", "name = log", s"fileName = ${work / "log"}", "layout.type = PatternLayout")
        val root = Seq("rootLogger.level = warn", "rootLogger.appenderRef.log.ref = log")
        IO.writeLines(
          logging,
          root ++ appender.map("appender.log." + _) :+ "appender.log.layout.pattern = %d %p %c{1}: %m%n%ex"
        )
        val settings = Map(
          "java.io.tmpdir" -> s"${work / "tmp"}",
          "log4j2.configurationFile" -> logging.toURI,
          "spark.testing" -> "true",
          "spark.test.home" -> work,
          "spark.ui.enabled" -> "false",
          "spark.driver.host" -> "127.0.0.1",
          "spark.driver.bindAddress" -> "127.0.0.1",
          "spark.sql.streaming.stateStore.providerClass" -> provider,
          "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled" -> "true",
          "spark.sql.streaming.checkpointFileManagerClass" -> s"$Dstl.DstlCheckpointFileManager"
        ).map { case (key, value) => s"-D$key=$value" }
        val run =
          Seq("-cp", classPath, "org.scalatest.tools.Runner", "-R", s"$classes", "-oW", "-fW", s"${work / "report"}")
        val java = ForkOptions().withRunJVMOptions(options.toVector ++ settings ++ Seq("-Xmx3g", "-Xss4m"))
          .withWorkingDirectory(work)
        val code = Fork.java(java, run ++ suites.flatMap(suite => Seq("-s", suite)))
        val lines = IO.readLines(work / "report")
        if (code != 0 && !lines.exists(_.endsWith(" FAILED ***")) || !lines.exists(_.startsWith("Tests: succeeded")))
          sys.error(s"Spark's tests with $provider did not run to their end: see ${work / "report"}")
        val Failed = """- (.*) \*\*\* FAILED \*\*\*.*""".r
        lines.collect { case Failed(test) => test }
      }
      val failed = failedOf("stocks-name", s"$Execution.state.RocksDBStateStoreProvider", withStocksName) ++
        failedOf("ours", s"$Dstl.DstlStateStoreProvider", withOurProvider)
      val (known, unknown) = failed.partition(test => failing.keys.exists(test.startsWith))
      known.foreach(test => log.info(s"Fails for a known reason: $test"))
      if (unknown.nonEmpty) sys.error(s"tests of Spark fail: ${unknown.mkString("; ")}")
    }
  )
}
