package org.apache.spark.sql.execution.streaming.state.dstl

import java.io.IOException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.DstlException

/** Questions to a storage that answers each call in turn as scripted. */
class RetriedReadsSuite extends AnyFunSuite {
  private val path = new Path("memory:/offsets/7")
  private val options = LogOptions.parse(
    Seq("upload.timeout" -> "20ms", "upload.nextAttemptDelay" -> "1ms").map { case (key, value) =>
      (LogOptions.Prefix + key, value)
    }
  )

  private def answer(answers: (() => Boolean)*)(reads: RetriedReads = Services.of(options).reads): Boolean = {
    val calls = new AtomicInteger
    reads.exists(path)(() => answers(calls.getAndIncrement())())
  }

  private val fails: () => Boolean = () => throw new IOException("no answer")

  test("the answer is passed on") {
    assert(answer(() => true)())
    assert(!answer(() => false)())
  }

  test("a question that hangs is overtaken by another") {
    val never = new CountDownLatch(1)
    try assert(answer(
        () => { never.await(); false },
        () => true
      )())
    finally never.countDown()
  }

  test("a question that fails is asked again, and fails as the last one did when all have failed") {
    assert(answer(fails, fails, () => true)())
    assert(intercept[IOException](answer(fails, fails, fails)()).getMessage == "no answer")
  }

  test("a question that is never answered fails after commit.timeout, naming the object") {
    val never = new CountDownLatch(1)
    val hangs: () => Boolean = () => { never.await(); false }
    val reads = Services.of(options.copy(commitTimeoutMs = 50)).reads
    try {
      val error = intercept[DstlException](answer(hangs, hangs, hangs)(reads))
      assert(error.condition == "DSTL_READ_TIMEOUT" && error.getMessage.contains(path.toString))
    } finally never.countDown()
  }
}
