// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.config

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.shaded.com.fasterxml.jackson.databind.ObjectMapper
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.error.InvalidOptionException
import sparkdstl.log.storage.PublishMode

class LogOptionsSuite extends AnyFunSuite {
  private val MiB = 1024L * 1024

  private def parse(options: (String, String)*): LogOptions =
    LogOptions.parse(options.map { case (key, value) => (LogOptions.Prefix + key, value) })

  // Each option: its field, its default as documented, another value as a user writes it, and that value.
  private val documented = Seq[(String, LogOptions => Any, Any, String, Any)](
    ("enabled", _.enabled, true, "false", false),
    ("storage", _.inMemory, false, "memory", true),
    ("storage.publish", _.publish, PublishMode.Auto, "rename", PublishMode.Rename),
    ("storage.requireExclusiveCreate", _.requireExclusiveCreate, false, "true", true),
    ("basePath", _.basePath, None, "s3a://bucket/log", Some("s3a://bucket/log")),
    ("commit.mode", _.commitAsync, true, "sync", false),
    ("commit.timeout", _.commitTimeoutMs, 600000, "1h", 3600000),
    ("commit.overlapOffsets", _.overlapOffsets, OverlapMode.Auto, "never", OverlapMode.Never),
    ("inline.maxSegmentSize", _.inlineMaxSegmentSize, 128 * 1024, "1k", 1024),
    ("inline.maxBatchSize", _.inlineMaxBatchSize, 16 * MiB, "2k", 2048),
    ("preemptivePersistThreshold", _.preemptivePersistThreshold, 5 * MiB, "65k", 65 * 1024),
    ("batch.persistSizeThreshold", _.persistSizeThreshold, 10 * MiB, "66k", 66 * 1024),
    ("batch.persistDelay", _.persistDelayMs, 1000, "67ms", 67),
    ("upload.numThreads", _.uploadThreads, 5, "11", 11),
    ("upload.maxInFlight", _.uploadMaxInFlight, 100 * MiB, "3m", 3 * MiB),
    ("upload.retryPolicy", _.retryPolicy, RetryPolicy.Hedged, "fixed", RetryPolicy.Fixed),
    ("upload.timeout", _.uploadTimeoutMs, 1000, "12ms", 12),
    ("upload.maxAttempts", _.uploadMaxAttempts, 3, "13", 13),
    ("upload.nextAttemptDelay", _.nextAttemptDelayMs, 500, "14", 14),
    ("download.numThreads", _.downloadThreads, 8, "16", 16),
    ("download.cache.maxSize", _.cacheMaxSize, 64 * MiB, "4m", 4 * MiB),
    ("download.cache.idleTimeout", _.cacheIdleTimeoutMs, 60000, "17s", 17000),
    ("download.diskCache.maxSize", _.diskCacheMaxSize, 1024 * MiB, "18m", 18 * MiB),
    ("pins.maxDuration", _.pinsMaxDurationMs, 86400000, "25min", 1500000),
    ("simulate.slowStorage", _.simulatedSlownessMs, 0, "24ms", 24),
    ("localRecovery.maxSize", _.localRecoveryMaxSize, 4096 * MiB, "23m", 23 * MiB),
    ("materialize.interval", _.materializeIntervalMs, 600000, "19s", 19000),
    ("materialize.replayCost", _.materializeReplayCost, 50, "20", 20),
    ("materialize.maxFailures", _.materializeMaxFailures, 3, "21", 21),
    ("materialize.onFailure", _.materializeFailsQuery, false, "fail", true),
    ("materialize.numThreads", _.materializeThreads, 2, "22", 22)
  )

  test("each option has its documented default") {
    documented.foreach { case (key, field, default, _, _) => assert(field(LogOptions.default) == default, key) }
  }

  LogOptions.all.foreach { option =>
    test(s"${option.key}: its default is allowed, and setting it changes nothing") {
      option.default.foreach { text =>
        assert(option.optionType.parse(text).isDefined)
        assert(parse(option.key -> text) == LogOptions.default)
      }
    }

    test(s"${option.key}: a value that is not allowed is refused by name") {
      val error = intercept[InvalidOptionException](parse(option.key -> "no such value"))
      assert(error.condition == "DSTL_INVALID_OPTION")
      assert(
        error.parameters == Map(
          "key" -> (LogOptions.Prefix + option.key),
          "value" -> "no such value",
          "allowed" -> option.optionType.allowed
        )
      )
      Seq(LogOptions.Prefix + option.key, "'no such value'", option.optionType.allowed).foreach { words =>
        assert(error.getMessage.contains(words))
      }
    }
  }

  test("each option sets its own field") {
    assert(documented.map(_._1).toSet == LogOptions.all.map(_.key).toSet, "the table of this test lacks an option")
    val options = parse(documented.map { case (key, _, _, text, _) => key -> text }: _*)
    documented.foreach { case (key, field, _, _, value) => assert(field(options) == value, key) }
  }

  test("each retry policy has its name") {
    assert(parse("upload.retryPolicy" -> "NONE").retryPolicy == RetryPolicy.NoRetry)
    assert(parse("upload.retryPolicy" -> "hedged").retryPolicy == RetryPolicy.Hedged)
  }

  test("the Scala and the Python parser accept and refuse the same values") {
    val cases = new ObjectMapper().readTree(getClass.getResource("/option-values.json")).elements.asScala.toSeq
    cases.foreach { node =>
      val (key, value, allowed) = (node.get(0).asText, node.get(1).asText, node.get(2).asBoolean)
      withClue(s"$key=$value: ")(assert(Try(parse(key -> value)).isSuccess == allowed))
    }
  }

  test("an unknown key is refused with the nearest known one") {
    Seq(
      "upload.maxInflight" -> "upload.maxInFlight",
      "upload.max-in-flight" -> "upload.maxInFlight",
      "commit.timeOut" -> "commit.timeout",
      "timeout" -> "commit.timeout",
      "maxInFlight" -> "upload.maxInFlight",
      "Enabled" -> "enabled",
      "basepath" -> "basePath",
      "inline.maxSegmntSize" -> "inline.maxSegmentSize",
      "download.cache.maxsize" -> "download.cache.maxSize",
      "" -> "enabled"
    ).foreach { case (wrong, nearest) =>
      val error = intercept[InvalidOptionException](parse(wrong -> "1"))
      assert(error.condition == "DSTL_UNKNOWN_OPTION")
      assert(
        error.parameters == Map("key" -> (LogOptions.Prefix + wrong), "nearest" -> (LogOptions.Prefix + nearest))
      )
      assert(error.getMessage.contains(s"the nearest one is ${LogOptions.Prefix}$nearest"))
    }
  }

  test("the error about several unknown keys always names the same one") {
    val error = intercept[InvalidOptionException](parse("zzz" -> "1", "aaa" -> "1", "mmm" -> "1"))
    assert(error.parameters("key") == LogOptions.Prefix + "aaa")
  }

  test("keys of other components are ignored, even with a similar prefix") {
    val others = Seq(
      "spark.sql.streaming.stateStore.dstlx" -> "1",
      "spark.sql.streaming.stateStore.providerClass" -> "x",
      "enabled" -> "false",
      "spark.sql.streaming.statestore.dstl.enabled" -> "false"
    )
    assert(LogOptions.parse(others) == LogOptions.default)
  }

  test("a null value counts as not set, and blanks around a value are ignored") {
    assert(parse("upload.numThreads" -> null) == LogOptions.default)
    assert(parse("upload.numThreads" -> " 7 ").uploadThreads == 7)
  }
}
