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

  test("the defaults are the documented ones") {
    val options = LogOptions.default
    import options._
    assert(enabled)
    assert(!inMemory)
    assert(publish == PublishMode.Auto)
    assert(!requireExclusiveCreate)
    assert(basePath == None)
    assert(commitAsync)
    assert(commitTimeoutMs == 600000)
    assert(inlineMaxSegmentSize == 128 * 1024)
    assert(inlineMaxBatchSize == 16 * MiB)
    assert(preemptivePersistThreshold == 5 * MiB)
    assert(persistSizeThreshold == 10 * MiB)
    assert(persistDelayMs == 1000)
    assert(materializeIntervalMs == 600000)
    assert(materializeReplayCost == 50)
    assert(materializeMaxFailures == 3)
    assert(!materializeFailsQuery)
    assert(materializeThreads == 2)
    assert(uploadThreads == 5)
    assert(uploadMaxInFlight == 100 * MiB)
    assert(retryPolicy == RetryPolicy.Hedged)
    assert(uploadTimeoutMs == 1000)
    assert(uploadMaxAttempts == 3)
    assert(nextAttemptDelayMs == 500)
    assert(downloadThreads == 8)
    assert(cacheMaxSize == 64 * MiB)
    assert(cacheIdleTimeoutMs == 60000)
    assert(diskCacheMaxSize == 1024 * MiB)
    assert(localRecoveryMaxSize == 4096 * MiB)
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
    val values = Map(
      "enabled" -> "false",
      "storage" -> "memory",
      "storage.publish" -> "rename",
      "storage.requireExclusiveCreate" -> "true",
      "basePath" -> "s3a://bucket/log",
      "commit.mode" -> "sync",
      "commit.timeout" -> "1h",
      "inline.maxSegmentSize" -> "1k",
      "inline.maxBatchSize" -> "2k",
      "preemptivePersistThreshold" -> "65k",
      "batch.persistSizeThreshold" -> "66k",
      "batch.persistDelay" -> "67ms",
      "upload.numThreads" -> "11",
      "upload.maxInFlight" -> "3m",
      "upload.retryPolicy" -> "fixed",
      "upload.timeout" -> "12ms",
      "upload.maxAttempts" -> "13",
      "upload.nextAttemptDelay" -> "14",
      "download.numThreads" -> "16",
      "download.cache.maxSize" -> "4m",
      "download.cache.idleTimeout" -> "17s",
      "download.diskCache.maxSize" -> "18m",
      "localRecovery.maxSize" -> "23m",
      "materialize.interval" -> "19s",
      "materialize.replayCost" -> "20",
      "materialize.maxFailures" -> "21",
      "materialize.onFailure" -> "fail",
      "materialize.numThreads" -> "22"
    )
    assert(values.keySet == LogOptions.all.map(_.key).toSet, "an option is missing here")
    val options = parse(values.toSeq: _*)
    import options._
    assert(!enabled)
    assert(inMemory)
    assert(publish == PublishMode.Rename)
    assert(requireExclusiveCreate)
    assert(basePath == Some("s3a://bucket/log"))
    assert(!commitAsync)
    assert(commitTimeoutMs == 3600000)
    assert(inlineMaxSegmentSize == 1024)
    assert(inlineMaxBatchSize == 2048)
    assert(preemptivePersistThreshold == 65 * 1024)
    assert(persistSizeThreshold == 66 * 1024)
    assert(persistDelayMs == 67)
    assert(materializeIntervalMs == 19000)
    assert(materializeReplayCost == 20)
    assert(materializeMaxFailures == 21)
    assert(materializeFailsQuery)
    assert(materializeThreads == 22)
    assert(uploadThreads == 11)
    assert(uploadMaxInFlight == 3 * MiB)
    assert(retryPolicy == RetryPolicy.Fixed)
    assert(uploadTimeoutMs == 12)
    assert(uploadMaxAttempts == 13)
    assert(nextAttemptDelayMs == 14)
    assert(downloadThreads == 16)
    assert(cacheMaxSize == 4 * MiB)
    assert(cacheIdleTimeoutMs == 17000)
    assert(diskCacheMaxSize == 18 * MiB)
    assert(localRecoveryMaxSize == 23 * MiB)
  }

  test("each retry policy has its name") {
    assert(parse("upload.retryPolicy" -> "NONE").retryPolicy == RetryPolicy.NoRetry)
    assert(parse("upload.retryPolicy" -> "hedged").retryPolicy == RetryPolicy.Hedged)
  }

  test("values just inside the bounds are accepted, just outside refused") {
    for (option <- LogOptions.all) {
      val bounds = option.optionType match {
        case OptionType.Size(low, high) => Some((low, high))
        case OptionType.Duration(low, high) => Some((low, high))
        case OptionType.Number(low, high) => Some((low.toLong, high.toLong))
        case _ => None
      }
      bounds.foreach { case (low, high) =>
        Seq(low, high).foreach(value => parse(option.key -> value.toString))
        Seq(low - 1, high + 1).foreach { value =>
          withClue(s"${option.key}=$value: ")(intercept[InvalidOptionException](parse(option.key -> value.toString)))
        }
      }
    }
  }

  test("values are taken and refused as the Python package takes and refuses them") {
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
      assert(error.getMessage.contains(s"Did you mean ${LogOptions.Prefix}$nearest?"))
    }
  }

  test("of several unknown keys the same one is named every time") {
    val error = intercept[InvalidOptionException](parse("zzz" -> "1", "aaa" -> "1", "mmm" -> "1"))
    assert(error.parameters("key") == LogOptions.Prefix + "aaa")
  }

  test("keys of others are ignored, also those that begin almost alike") {
    val others = Seq(
      "spark.sql.streaming.stateStore.dstlx" -> "1",
      "spark.sql.streaming.stateStore.providerClass" -> "x",
      "enabled" -> "false",
      "spark.sql.streaming.statestore.dstl.enabled" -> "false"
    )
    assert(LogOptions.parse(others) == LogOptions.default)
  }

  test("a value of null counts as not set, blanks around a value don't count") {
    assert(parse("upload.numThreads" -> null) == LogOptions.default)
    assert(parse("upload.numThreads" -> " 7 ").uploadThreads == 7)
  }

  test("no key stands for two options") {
    val keys = LogOptions.all.map(_.key)
    assert(keys.distinct == keys)
  }
}
