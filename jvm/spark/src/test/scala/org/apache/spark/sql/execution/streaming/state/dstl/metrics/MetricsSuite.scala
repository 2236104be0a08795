// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.metrics

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import com.codahale.metrics.Gauge

import org.apache.spark.SparkEnv
import org.apache.spark.metrics.source.Source
import org.apache.spark.sql.execution.streaming.state.dstl.{ComparisonSuite, Operator}

/** The log's metrics in Spark's metrics system. */
class MetricsSuite extends ComparisonSuite {
  private def sources: Seq[Source] = SparkEnv.get.metricsSystem.getSourcesByName("dstl")

  private def values: Map[String, Long] = sources.head.metricRegistry.getGauges.asScala.map { case (name, gauge) =>
    name -> gauge.asInstanceOf[Gauge[Long]].getValue
  }.toMap

  Seq(ours, below).foreach { contender =>
    test(s"${contender.name}: the source counts commits, requests, uploads and what is replayed") {
      val playing =
        new Playing(Operator.totals, contender, fresh("m"))
      playing.play(batches.take(2))
      val before = values
      playing.play(batches.drop(2))
      val now = values
      def grew(name: String): Long = now(name) - before(name)
      assert(grew("commits.count") == batches.size - 2)
      assert(grew("commits.failures") == 0)
      assert(grew("commits.inlineBytes") > 0 && grew("commits.entryBytes") > grew("commits.inlineBytes"))
      // An entry for the offsets and one for the commit of each batch, and the claim of an epoch.
      assert(grew("requests.create.count") >= 2 * (batches.size - 2) + 1)
      assert(now("commits.retainedBytes") >= grew("commits.entryBytes"))
      assert(grew("requests.create.attempts") >= grew("requests.create.count"))
      assert(now("requests.create.latencyP99Ms") >= now("requests.create.latencyP50Ms"))
      // The second start has rebuilt its stores.
      assert(grew("replay.segments") > 0 && grew("replay.bytes") > 0 && grew("cache.misses") > 0)
      assert(now("commits.inlineBytesHeld") == 0 && now("uploads.bytesInFlight") == 0)
    }
  }

  test("a process has one metrics source, with exactly the metrics that the documentation lists") {
    new Playing(
      Operator.totals,
      ours,
      fresh("m")
    ).play(batches.take(1))
    assert(sources.size == 1)
    val root =
      Iterator.iterate(Path.of("").toAbsolutePath)(_.getParent).find(at => Files.exists(at.resolve("build.sbt"))).get
    val text = Files.readString(root.resolve("docs/metrics.md"))
    val names = values.keys.map(_.replaceFirst("^requests\\.[a-zA-Z]+\\.", "requests.<operation>.")).toSet
    val figure = "`((?:requests|uploads|storage|cache|replay|recovery|materializations|commits)\\.[^`]+)`".r
    val documented = text.linesIterator.filter(_.startsWith("| `")).flatMap { line =>
      figure.findAllMatchIn(line.split('|')(1)).map(_.group(1))
    }.toSet
    assert(names == documented)
  }
}
