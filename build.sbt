// SPDX-License-Identifier: Apache-2.0
import com.typesafe.tools.mima.core.Problem

import Tooling._

// The Spark line to build for. Projects without Spark are built once, with the libraries of the default line.
val line = SparkLine.chosen
val hadoopVersion = "3.5.0"
// The version in Spark's distribution.
val jacksonVersion = "2.21.2"

ThisBuild / version := "0.1.0"
// The owner of the repository on GitHub, and with it the namespace on Maven Central. OWNER is a placeholder: `make release` fails
// with it. `checkCoordinates` names the files that have to contain the same.
val owner = "OWNER"
val repository = s"https://github.com/$owner/spark-dstl"
ThisBuild / organization := s"io.github.$owner"
// The oldest Scala 2.13 of a Spark line with Scala 2.13: projects without Spark are compiled once and run in all lines.
ThisBuild / scalaVersion := "2.13.16"
ThisBuild / javacOptions ++= Seq("--release", "17")
ThisBuild / scalacOptions ++= Seq(
  "-release:17",
  "-deprecation",
  "-feature",
  "-unchecked",
  "-Xlint:_,-byname-implicit",
  "-Wdead-code",
  "-Wunused",
  "-Wvalue-discard",
  "-Werror"
)
// `sonaUpload` uploads what is staged here to Maven Central.
Global / stagingDirectory := (ThisBuild / baseDirectory).value / "target" / "release" / "maven"
ThisBuild / Test / fork := true
ThisBuild / Test / parallelExecution := false
// The other collectors take processors from the tests. Most run much code a few times: the second compiler costs more
// time than it saves. Java verifies the code of each class that it loads, a tenth of the time of a start of Spark.
ThisBuild / Test / javaOptions ++= Seq("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1") ++
  Seq("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
// Two forked test JVMs at a time: with one, a machine with two cores is idle for a fifth of the time.
Global / concurrentRestrictions := Seq(Tags.limitAll(4), Tags.limit(Tags.ForkedTestGroup, 2))

val scalatest = "org.scalatest" %% "scalatest" % "3.2.19" % Test
val scalacheck = "org.scalatestplus" %% "scalacheck-1-18" % "3.2.19.0" % Test

// The options that Spark passes to its JVMs on Java 17 (JavaModuleOptions): tests start Spark in their own process.
val openedPackages = Seq(
  "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio",
  "java.util java.util.concurrent java.util.concurrent.atomic jdk.internal.ref",
  "sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
).flatMap(_.split(" "))

val sparkModuleOptions = openedPackages.map(pkg => s"--add-opens=java.base/$pkg=ALL-UNNAMED") ++ Seq(
  "-XX:+IgnoreUnrecognizedVMOptions",
  "-Djdk.reflect.useDirectMethodHandle=false",
  "-Dio.netty.tryReflectionSetAccessible=true"
)

/** The log. It depends on Hadoop's FileSystem API and a logging facade; the build fails if it depends on Spark. */
lazy val log = (project in file("jvm/log"))
  .settings(
    name := "spark-dstl-log",
    ofScala,
    libraryDependencies ++= Seq(
      "org.apache.hadoop" % "hadoop-client-api" % hadoopVersion % Provided,
      "com.fasterxml.jackson.core" % "jackson-databind" % jacksonVersion % Provided,
      "org.slf4j" % "slf4j-api" % "2.0.17" % Provided,
      "org.apache.hadoop" % "hadoop-client-runtime" % hadoopVersion % Test,
      "org.apache.logging.log4j" % "log4j-slf4j2-impl" % "2.25.3" % Test,
      scalatest,
      scalacheck
    ),
    Compile / sourceGenerators += softwareVersion.taskValue,
    Compile / run / fork := true,
    Coverage.settings,
    noSparkOnClassPath
  )

/** A deterministic simulation that runs the log's own classes, and checks their invariants. */
lazy val sim = (project in file("jvm/sim"))
  .dependsOn(log)
  .settings(
    name := "spark-dstl-sim",
    ofScala,
    libraryDependencies ++= Seq(
      "org.apache.hadoop" % "hadoop-client-api" % hadoopVersion,
      "org.apache.hadoop" % "hadoop-client-runtime" % hadoopVersion % Runtime,
      "org.slf4j" % "slf4j-api" % "2.0.17",
      "com.fasterxml.jackson.core" % "jackson-databind" % jacksonVersion,
      scalatest
    ),
    // Worlds allocate much that soon dies, and run long enough for the second compiler, but only for the hottest methods.
    Test / javaOptions ++= Seq("-Xmn600m", "-XX:TieredStopAtLevel=4", "-XX:Tier4InvocationThreshold=20000") ++
      Seq("-XX:Tier4MinInvocationThreshold=5000", "-XX:Tier4CompileThreshold=40000"),
    Compile / run / fork := true
  )

/** The same simulation with flaws in the log, each behind a switch: measures which of them the simulation finds. */
lazy val flaws = (project in file("jvm/flaws"))
  .settings(
    name := "spark-dstl-sim-flaws",
    ofScala,
    scalacOptions := Seq("-release:17"),
    libraryDependencies ++= (sim / libraryDependencies).value,
    Compile / sourceGenerators += flawedSources.taskValue,
    Compile / unmanagedSourceDirectories += (sim / Compile / scalaSource).value,
    Compile / unmanagedResourceDirectories += (sim / Compile / resourceDirectory).value,
    // Generated sources are not formatted.
    Compile / scalafmt / unmanagedSourceDirectories := Seq((Compile / scalaSource).value),
    Compile / run / fork := true
  )

/** Suites of `jvm/spark` that take longer than others, from the slowest on: `make test` prints the slowest. */
val slowSuites = Seq("Operators", "StateReading", "Joins", "Damage", "TakeOver", "Compatibility", "Rollback") ++
  Seq("CopiedCheckpoint", "MovedCheckpoint", "RequestCount", "ContextStop")

/** The Spark side: state store provider, checkpoint file manager, coordinator. */
lazy val spark = (project in file("jvm/spark"))
  .dependsOn(log % "compile->compile;test->test")
  .settings(
    name := "spark-dstl",
    libraryDependencies ++= Seq(scalatest, scalacheck),
    ofSparkLine,
    sparkJars,
    // The tests of jvm/log depend on another version.
    dependencyOverrides ++= Seq("api", "runtime").map(of => "org.apache.hadoop" % s"hadoop-client-$of" % line.hadoop),
    Compile / sourceGenerators += sparkBuiltFor.taskValue,
    // Two processes at a time run half of the suites each, one suite after another: in turn A, B, B, A, the slow ones first.
    Test / parallelExecution := true,
    Test / testGrouping := {
      val options = (Test / forkOptions).value
      IO.delete(temporaryFiles(target.value))
      IO.createDirectory(temporaryFiles(target.value))
      def rank(name: String) = slowSuites.reverse.indexWhere(slow => name.endsWith(s".${slow}Suite"))
      val numbered = (Test / definedTests).value.sortBy(suite => (-rank(suite.name), suite.name)).zipWithIndex
      Seq(0, 1).map { half =>
        val suites = numbered.collect { case (suite, number) if (number + 1) / 2 % 2 == half => suite }
        Tests.Group(s"half ${half + 1}", suites, Tests.SubProcess(options))
      }
    },
    Test / javaOptions += s"-Djava.io.tmpdir=${temporaryFiles(target.value)}",
    // Spark, RocksDB and codecs leave files there.
    Test / executeTests := {
      val output = (Test / executeTests).value
      IO.delete(temporaryFiles(target.value))
      output
    },
    Test / javaOptions ++= sparkModuleOptions ++ Seq(
      "-Xmx3g",
      // With the default all live objects are copied five times as often.
      "-Xmn800m",
      // With the default all garbage is collected several times while Spark's classes are loaded.
      "-XX:MetaspaceSize=512m",
      // The default for one level is full after a minute of tests, and compilation stops then.
      "-XX:ReservedCodeCacheSize=512m",
      "-Dspark.hadoop.fs.file.impl=sparkdstl.testing.PlainLocalFileSystem",
      "-Dspark.hadoop.fs.AbstractFileSystem.file.impl=sparkdstl.testing.PlainLocalFs"
    ),
    assembly / assemblyJarName := jarName("spark-dstl", version.value),
    // Spark's distribution has them.
    assembly / assemblyExcludedJars := (Compile / unmanagedJars).value,
    assembly / assemblyOption := (assembly / assemblyOption).value.withIncludeScala(false),
    assembly / test := {},
    // End-to-end tests use failing file systems of jvm/log's tests, so the jar contains those classes too.
    Test / packageBin / mappings := {
      val own = (Test / packageBin / mappings).value
      val names = own.map(_._2).toSet
      own ++ (log / Test / packageBin / mappings).value.filterNot { case (_, name) => names(name) }
    }
  )

/** The benchmark. It is not shipped, and uses the file systems and file managers of the tests. */
lazy val bench = (project in file("jvm/bench"))
  .dependsOn(spark % "compile->test")
  .settings(
    name := "spark-dstl-bench",
    libraryDependencies += scalatest,
    ofSparkLine,
    sparkJars,
    Test / javaOptions ++= sparkModuleOptions
  )

/** The artifacts for a Maven repository: one jar with both modules, their sources and their documentation. */
lazy val published = (project in file("jvm/published"))
  .settings(
    name := s"spark-dstl-${line.suffix}",
    // sbt's default has a hyphen for each dot.
    moduleName := name.value,
    description := "A durable short-term log for the state of Spark Structured Streaming queries",
    homepage := Some(url(repository)),
    licenses := Seq("Apache-2.0" -> url("https://www.apache.org/licenses/LICENSE-2.0.txt")),
    scmInfo := Some(ScmInfo(url(repository), s"scm:git:$repository.git")),
    developers := List(Developer(owner, owner, s"$owner@users.noreply.github.com", url(s"https://github.com/$owner"))),
    versionScheme := Some("early-semver"),
    // Spark's distribution has Scala's library and Spark.
    autoScalaLibrary := false,
    libraryDependencies += "org.scala-lang" % "scala-library" % scalaVersion.value % Provided,
    libraryDependencies ++= sparkOnMavenCentral,
    ofSparkLine,
    Compile / packageBin := (spark / assembly).value,
    Compile / packageSrc / mappings :=
      (log / Compile / packageSrc / mappings).value ++ (spark / Compile / packageSrc / mappings).value,
    Compile / doc / sources := (log / Compile / sources).value ++ (spark / Compile / sources).value,
    Compile / doc / dependencyClasspath := (spark / Compile / dependencyClasspath).value,
    Compile / doc / scalacOptions -= "-Werror",
    checkCoordinates := {
      val (pom, jar) = (makePom.value.base, (spark / assembly / assemblyJarName).value.stripSuffix(".jar"))
      if (pom != jar) sys.error(s"the artifact for Maven is named $pom, and the jar of the Python package $jar")
      val coordinates = s"${organization.value}:${pom.stripSuffix(s"-${version.value}")}:${version.value}"
      val places =
        Seq("README.md" -> coordinates, "docs/releasing.md" -> coordinates, "python/pyproject.toml" -> repository)
      val wrong = places.filterNot { case (name, expected) => IO.read(file(name)).contains(expected) }
      if (wrong.nonEmpty) sys.error(wrong.map { case (name, of) => s"$name must contain $of" }.mkString("; "))
    },
    publishTo := localStaging.value,
    mimaPreviousArtifacts :=
      earlierReleases(file("CHANGELOG.md"), version.value).map(organization.value %% name.value % _),
    mimaCurrentClassfiles := (Compile / packageBin).value,
    // The public classes: all others may change with each release.
    mimaBinaryIssueFilters += { (problem: Problem) =>
      val public = """.*\.state\.dstl\.Dstl(StateStoreProvider|CheckpointFileManager|Release)\b.*"""
      problem.matchName.exists(_.matches(public))
    }
  )

/** The connector to S3 of the line's Hadoop, for tests. It has dependencies only, and is not shipped. */
lazy val s3a = (project in file("jvm/s3a")).settings(StorageJars.connectorSettings(SparkLine.chosen.hadoop))

/** An HDFS in its own process, and the jars of YARN, for tests. It is not shipped. */
lazy val storage = (project in file("jvm/storage"))
  .settings(
    name := "spark-dstl-storage",
    libraryDependencies ++= Seq(
      "org.apache.hadoop" % "hadoop-client-minicluster" % hadoopVersion,
      "org.apache.hadoop" % "hadoop-minikdc" % hadoopVersion,
      // The servers of YARN need these, and the mini cluster leaves them out.
      "org.bouncycastle" % "bcpkix-jdk18on" % "1.82" % Runtime,
      "org.slf4j" % "slf4j-reload4j" % "2.0.17" % Runtime
    ),
    StorageJars.serverSettings
  )

/** Spark's own tests with the jar. */
lazy val suites = (project in file("jvm/suites"))
  .settings(
    SparkSuites.settings(sparkModuleOptions ++ Seq("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")),
    Compile / unmanagedJars += Attributed.blank((spark / assembly).value)
  )

lazy val root = (project in file("."))
  .aggregate(log, sim, spark, bench)
  .settings(
    publish / skip := true,
    jar := {
      val name = (spark / assembly / assemblyJarName).value
      publishJar((spark / assembly).value, target.value / name, file("python/src/spark_dstl/jars") / name)
    },
    benchJar :=
      publishJar((bench / Compile / packageBin).value, target.value / jarName("spark-dstl-bench", version.value)),
    testJar :=
      publishJar((spark / Test / packageBin).value, target.value / jarName("spark-dstl-test", version.value)),
    verify := report(
      target.value / "verify.txt",
      streams.value.log,
      Seq(
        "formatting of build files" -> (Compile / scalafmtSbtCheck).result.value,
        "formatting of sources" ->
          scalafmtCheckAll.all(ScopeFilter(inProjects(log, sim, flaws, spark, bench, storage))).result.value,
        "coordinates for Maven" -> (published / checkCoordinates).result.value,
        "compatibility of public classes" -> (published / mimaReportBinaryIssues).result.value,
        "tests of jvm/log" -> (log / Test / test).result.value,
        "tests of jvm/sim" -> (sim / Test / test).result.value,
        "tests of jvm/flaws" -> (flaws / Test / test).result.value,
        "tests of jvm/spark" -> (spark / Test / test).result.value,
        "tests of jvm/bench" -> (bench / Test / test).result.value,
        "jar" -> jar.result.value,
        "test jar" -> testJar.result.value,
        "connector jars" -> (s3a / StorageJars.connectorJars).result.value,
        "benchmark jar" -> benchJar.result.value
      )
    )
  )

/** The version that log files record for their writer, and that the jar reports. */
lazy val softwareVersion = Def.task {
  val file = (Compile / sourceManaged).value / "sparkdstl" / "log" / "SoftwareVersion.scala"
  IO.write(
    file,
    s"""package sparkdstl.log
       |
       |object SoftwareVersion { val Current = "${version.value}" }
       |""".stripMargin
  )
  Seq(file)
}

/** The temporary files of a project's tests. */
def temporaryFiles(target: File): File = target / "test-files"

/** Names of jars, which contain the Spark line. */
def jarName(of: String, version: String): String = s"$of-${line.suffix}_${line.scalaBinary}-$version.jar"

/** Projects without Spark are built once, and once more for a line with an older Scala. */
lazy val ofScala: Seq[Def.Setting[_]] = if (line.hasOldScala) oldScala else if (line.isOther) otherScala else Nil

/** For an older Scala 2.13, which has other warnings, and takes the release as a separate argument. */
lazy val otherScala: Seq[Def.Setting[_]] = Seq(
  target := line.target(baseDirectory.value),
  scalaVersion := line.scala,
  scalacOptions := scalacOptions.value.filterNot(Set("-Werror", "-release:17")) ++ Seq("-release", "17")
)

/** For a Scala that lacks features of the sources, and has fewer warnings: the newer Scala checks for warnings. */
lazy val oldScala: Seq[Def.Setting[_]] = Seq(
  target := line.target(baseDirectory.value),
  scalaVersion := line.scala,
  scalacOptions := Seq("-release:17", "-feature", "-unchecked"),
  libraryDependencies +=
    "org.scala-lang.modules" %% "scala-collection-compat" % "2.7.0" % Provided, // as Spark 3.5 has it
  Compile / sources :=
    OldScala.withImports((Compile / sources).value, (Compile / sourceManaged).value / "old-scala", isShipped = true),
  Test / sources :=
    OldScala.withImports((Test / sources).value, (Test / sourceManaged).value / "old-scala", isShipped = false)
)

/** The target, Scala and version-specific sources of the Spark line. */
lazy val ofSparkLine: Seq[Def.Setting[_]] = Seq(
  target := line.target(baseDirectory.value),
  scalaVersion := line.scala,
  Compile / unmanagedSourceDirectories ++= line.directories(baseDirectory.value, "main"),
  Test / unmanagedSourceDirectories ++= line.directories(baseDirectory.value, "test"),
  // The sources of all lines are formatted.
  Compile / scalafmt / unmanagedSourceDirectories := (baseDirectory.value / "src" / "main" * "scala*").get,
  Test / scalafmt / unmanagedSourceDirectories := (baseDirectory.value / "src" / "test" * "scala*").get
) ++ ofScala

/** The Spark to compile against. It is not part of any jar. */
lazy val sparkJars: Seq[Def.Setting[_]] =
  if (line.fromPyPI) Seq(Compile / unmanagedJars := PySpark.jars(line.version, streams.value.log))
  else Seq(libraryDependencies ++= sparkOnMavenCentral)

lazy val sparkOnMavenCentral: Seq[ModuleID] =
  if (line.fromPyPI) Nil else Seq("org.apache.spark" %% "spark-sql" % line.version % Provided)

/** Generates the Spark version that the jar was compiled against. */
lazy val sparkBuiltFor = Def.task {
  val directory = (Compile / sourceManaged).value / "org/apache/spark/sql/execution/streaming/state/dstl/runtime"
  val file = directory / "BuiltFor.scala"
  IO.write(
    file,
    s"""package org.apache.spark.sql.execution.streaming.state.dstl.runtime
       |
       |/** The Spark that this was compiled against. */
       |private[dstl] object BuiltFor {
       |  val Line = "${line.name}"
       |  val Version = "${line.version}"
       |}
       |""".stripMargin
  )
  Seq(file)
}

/** Generates a copy of the log's sources with the listed flaws. */
lazy val flawedSources = Def.task {
  FlawedSources.write(
    FlawedSources.read((baseDirectory.value * "*.txt").get),
    (log / Compile / sources).value,
    (log / Compile / scalaSource).value / "sparkdstl" / "log",
    (Compile / sourceManaged).value / "flawed"
  )
}

lazy val noSparkOnClassPath = Compile / compile := {
  val offending = (Compile / dependencyClasspath).value.map(_.data.getName).filter(_.startsWith("spark-"))
  if (offending.nonEmpty)
    sys.error(s"jvm/log must not depend on Spark, but has on its class path: ${offending.mkString(", ")}")
  (Compile / compile).value
}
