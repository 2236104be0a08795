package sparkdstl.log.format

import java.util.UUID

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import sparkdstl.log.format.FormatSamples.history

class RunHistorySuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  private val runs: Gen[UUID] = Gen.oneOf(1L, 2L, 3L).map(new UUID(0, _))
  private val batches: Gen[Long] = Gen.choose(0L, 60L)
  private val around: Range = -1 to 70

  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 500, sizeRange = 8)

  test("append names the batch's run, keeps the batches before and forgets those after") {
    forAll(history, batches, runs) { (history, batch, run) =>
      val appended = history.append(batch, run)
      around.foreach { n =>
        val expected = if (n < batch) history.runOf(n) else Option.when(n == batch)(run)
        assert(appended.runOf(n) == expected, s"batch $n")
      }
    }
  }

  test("batches appended one by one take one range a run") {
    forAll(batches, Gen.listOf(runs)) { (first, list) =>
      val appended = list.zipWithIndex.foldLeft(RunHistory.empty) { case (history, (run, n)) =>
        history.append(first + n, run)
      }
      val changes = list.zip(list.drop(1)).count { case (a, b) => a != b }
      assert(appended.ranges.size == (if (list.isEmpty) 0 else changes + 1))
      assert(appended.batches.toSeq == list.zipWithIndex.map { case (run, n) => (first + n, run) })
    }
  }

  test("append is idempotent") {
    forAll(history, batches, runs) { (history, batch, run) =>
      assert(history.append(batch, run).append(batch, run).batches.toSeq == history.append(batch, run).batches.toSeq)
    }
  }

  test("a gap of batches without a batch log stays a gap, also between batches of one run") {
    val run = new UUID(0, 1)
    val gap = RunHistory.empty.append(1, run).append(3, run)
    assert(gap.ranges == Vector(RunRange(1, 1, run), RunRange(3, 3, run)))
    assert(gap.runOf(2).isEmpty)
  }

  test("upTo and from split a history in two") {
    forAll(history, batches) { (history, batch) =>
      around.foreach { n =>
        assert(history.upTo(batch).runOf(n) == history.runOf(n).filter(_ => n <= batch))
        assert(history.from(batch).runOf(n) == history.runOf(n).filter(_ => n >= batch))
      }
      assert(history.upTo(batch).batches.toSeq ++ history.from(batch + 1).batches == history.batches.toSeq)
    }
  }

  test("batches lists what runOf says, in order") {
    forAll(history) { history =>
      assert(history.batches.toSeq == around.flatMap(n => history.runOf(n).map(n.toLong -> _)).toSeq)
    }
  }

  test("ranges that overlap or descend are not a history") {
    val run = new UUID(0, 1)
    intercept[IllegalArgumentException](RunHistory(Vector(RunRange(0, 2, run), RunRange(2, 3, run))))
    intercept[IllegalArgumentException](RunHistory(Vector(RunRange(4, 5, run), RunRange(0, 1, run))))
    intercept[IllegalArgumentException](RunRange(2, 1, run))
    intercept[IllegalArgumentException](RunRange(-1, 1, run))
  }
}
