// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.config

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.OptionType._

class OptionTypeSuite extends AnyFunSuite {
  private val size = Size(0, Long.MaxValue)
  private val duration = Duration(0, Long.MaxValue)

  test("sizes are parsed in Spark's notation, and plain numbers are bytes") {
    val MiB = 1048576L
    val plain = Seq("0" -> 0L, "17" -> 17L, "1b" -> 1L, "3k" -> 3072L, "3kb" -> 3072L)
    val large = Seq("5m" -> 5 * MiB, "5MB" -> 5 * MiB, "2g" -> 2048 * MiB, "2gb" -> 2048 * MiB, "1t" -> MiB * MiB)
    (plain ++ large :+ " 10m " -> 10 * MiB).foreach { case (text, bytes) =>
      assert(size.parse(text).contains(bytes), text)
    }
  }

  test("durations are parsed in Spark's notation, and plain numbers are milliseconds") {
    val short = Seq("0" -> 0L, "250" -> 250L, "250ms" -> 250L, "3s" -> 3000L, "10 s" -> 10000L)
    val long = Seq("2m" -> 120000L, "2min" -> 120000L, "1h" -> 3600000L, "1d" -> 86400000L)
    (short ++ long).foreach { case (text, millis) =>
      assert(duration.parse(text).contains(millis), text)
    }
  }

  test("values that are no size or duration are refused") {
    val malformed = Seq("", " ", "m", "-1", "-1m", "1.5m", "1x", "0x10", "1 m b", "1e3", "９")
    (malformed :+ "9999999999999999999" :+ "99999999999999999t").foreach { text =>
      assert(size.parse(text).isEmpty, text)
      assert(duration.parse(text.replace("t", "d")).isEmpty, text)
    }
    assert(size.parse("5s").isEmpty)
    assert(duration.parse("5k").isEmpty)
  }

  test("bounds are inclusive") {
    val bounded = Seq[OptionType[Long]](Size(10, 20), Duration(10, 20))
    bounded.foreach { option =>
      assert(option.parse("10").contains(10L) && option.parse("20").contains(20L))
      assert(option.parse("9").isEmpty && option.parse("21").isEmpty)
    }
    assert(Number(1, 3).parse("1").contains(1) && Number(1, 3).parse("3").contains(3))
    Seq("0", "4", "-1", "", "two", "1.0", "3000000000").foreach(text => assert(Number(1, 3).parse(text).isEmpty, text))
  }

  test("the description of the allowed values uses the notation of the option") {
    assert(Size(65536, 536870912).allowed.startsWith("a size from 64k to 512m,"))
    assert(Size(0, 1000).allowed.startsWith("a size from 0 to 1000,"))
    assert(Duration(1, 3600000).allowed.startsWith("a duration from 1ms to 1h,"))
    assert(Duration(1500, 90000).allowed.startsWith("a duration from 1500ms to 90s,"))
    assert(Choice("async" -> true, "sync" -> false).allowed == "one of async, sync")
  }
}
