// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.concurrent.atomic.{AtomicInteger, AtomicReference}
import java.util.concurrent.{ConcurrentHashMap, CyclicBarrier}

import scala.collection.mutable.ArrayBuffer

import org.scalatest.concurrent.{Signaler, ThreadSignaler, TimeLimits}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import org.apache.spark.sql.internal.SQLConf

class InParallelSuite extends AnyFunSuite with TimeLimits {
  // A part that does not end fails its test.
  private implicit val signaler: Signaler = ThreadSignaler
  private val limit = Span(60, Seconds)

  private type Part = InParallel.Part[Int]

  private def part(results: Int*): Part = use => results.foreach(use)

  private def endless(begun: AtomicInteger): Part = use => {
    begun.incrementAndGet()
    Iterator.from(0).foreach(use)
  }

  private def inOrder(parts: Part*): Seq[Int] = {
    val used = ArrayBuffer.empty[Int]
    InParallel.inOrder(parts)((_: Int) => ())(used += _: Unit)
    used.toSeq
  }

  test("results are used in the order of the parts, which work at the same time") {
    val together = new CyclicBarrier(4)
    val parts = Seq.tabulate[Part](4) { number => use =>
      together.await(); (0 to 9).foreach(of => use(number * 10 + of))
    }
    assert(inOrder(parts: _*) == (0 to 39))
    assert(inOrder() == Nil)
  }

  test("there may be many more parts than threads") {
    assert(inOrder(Seq.tabulate(1000)(part(_)): _*) == (0 until 1000))
  }

  test("parts have the settings of the caller") {
    val conf = new SQLConf
    conf.setConfString("spark.sql.shuffle.partitions", "77")
    val seen = new AtomicReference(0)
    SQLConf.withExistingConf(conf)(inOrder(_ => seen.set(SQLConf.get.numShufflePartitions)))
    assert(seen.get == 77)
  }

  test("after a part's error the others end, and results that were not used are discarded") {
    val begun = new AtomicInteger
    val discarded = ConcurrentHashMap.newKeySet[Int]
    val used = ArrayBuffer.empty[Int]
    val later = Seq.fill(1000)(endless(begun))
    val failing: Part = use => { use(2); throw new IllegalStateException("broken store") }
    val parts = part(1) +: failing +: later
    val error = intercept[IllegalStateException] {
      failAfter(limit)(InParallel.inOrder(parts)(discarded.add(_: Int): Unit)(used += _: Unit))
    }
    assert(error.getMessage == "broken store")
    assert(used.toSeq == Seq(1, 2))
    assert(begun.get < 1000)
    assert(begun.get == 0 || discarded.contains(0))
  }

  test("results that cannot be discarded keep no part, and hide no error") {
    val begun = new AtomicInteger
    def discard(result: Int): Unit = throw new IllegalStateException(s"$result cannot be closed")
    def use(result: Int): Unit = throw new IllegalStateException("gone")
    val error = intercept[IllegalStateException] {
      failAfter(limit)(InParallel.inOrder(Seq.fill(20)(endless(begun)))(discard)(use))
    }
    assert(error.getMessage == "gone")
  }

  test("after an error of the caller the parts end") {
    val begun = new AtomicInteger
    def use(result: Int): Unit = if (result == 3) throw new IllegalStateException("gone")
    val error = intercept[IllegalStateException] {
      failAfter(limit)(InParallel.inOrder(Seq.fill(20)(endless(begun)))((_: Int) => ())(use))
    }
    assert(error.getMessage == "gone")
    assert(begun.get < 20)
  }
}
