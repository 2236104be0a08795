// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.io.IOException

import scala.collection.mutable

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.request.RequestFixture.hedged
import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.OperationKind

/** The log's lines about requests that are slow, while they are under way. */
class SlowRequestsSuite extends AnyFunSuite {
  private val lines = mutable.ArrayBuffer.empty[String]
  private val timer = new ManualTimer
  private var isStarting = false
  private val requests =
    new Requests(hedged, TestRuntime(timer), new RequestMetrics, new StorageHistory, lines += _, () => isStarting)

  private def run(name: String, timeoutMillis: Long = 600000): ScriptedAttempts = {
    val attempts = new ScriptedAttempts
    requests.run(RequestKind(OperationKind.Read), name, timeoutMillis)(attempts): Unit
    attempts
  }

  test("a slow request is logged every 30 seconds with the states of its attempts") {
    val attempts = run("read of /x")
    timer.advance(29999)
    assert(lines.isEmpty)
    timer.advance(1)
    assert(lines == Seq(
      "read of /x is not done after 30 s, in 7 attempt(s), 4 of them aborted; none was answered. Others begin until 600 s have passed"
    ))
    attempts.fail(1, new IOException("refused", new IOException("no route to host")))
    timer.advance(30000)
    assert(lines.size == 2)
    Seq("after 60 s, in 10 attempt(s)", "; 1 failed, the last: ", "refused", "no route to host").foreach(words =>
      assert(lines.last.contains(words), lines.last)
    )
    attempts.succeed(2)
    timer.advance(100000)
    assert(lines.size == 2 && timer.pending == 0)
  }

  test("an error that needs an operator is logged at once") {
    lines.clear()
    timer.advance(60000)
    val attempts = run("list of /x")
    attempts.fail(1, new IOException("mkdir", new IOException("No space left on device")))
    assert(lines.size == 1 && lines.head.startsWith("list of /x has failed: "), lines)
    assert(lines.head.contains("No space left on device") && lines.head.contains("until 600 s have passed"), lines)
    timer.advance(500)
    attempts.succeed(2)
    val passing = run("list of /y")
    passing.fail(1)
    timer.advance(500)
    passing.succeed(2)
    assert(lines.size == 1)
    timer.advance(30000)
    isStarting = true
    val first = run("list of /z")
    first.fail(1, new IOException("mkdir", new IOException("No space left on device")))
    isStarting = false
    assert(lines.last.contains("until 3 s have passed"), lines)
    timer.advance(500)
    first.succeed(2)
  }

  test("one of many slow requests is named, and the others are counted in the next line") {
    lines.clear()
    val first = (1 to 10).map(number => run(s"read of /$number"))
    timer.advance(31000)
    assert(lines.size == 1 && !lines.head.contains("other"), lines)
    timer.advance(30000)
    assert(lines.size == 2 && lines.last.contains("9 other request(s) are slow"), lines)
    first.foreach(_.succeed(1))
  }

  test("a request with a deadline below the threshold is not logged") {
    lines.clear()
    run("read of /short", timeoutMillis = 30000)
    timer.advance(60000)
    assert(lines.isEmpty && timer.pending == 0)
  }
}
