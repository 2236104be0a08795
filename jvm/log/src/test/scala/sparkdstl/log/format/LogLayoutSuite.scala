package sparkdstl.log.format

import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import sparkdstl.log.format.FormatSamples.{number, someRun, uuid}

class LogLayoutSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  test("a batch log's name says its batch and run") {
    forAll(number, uuid) { (batch, run) =>
      val path = LogLayout.batchLog(batch, run)
      assert(path.startsWith("batches/"))
      assert(LogLayout.parseBatchLog(path.stripPrefix("batches/")).contains((batch, run)))
    }
  }

  test("other names are not batch logs") {
    Seq(
      "",
      "7.log",
      s"7-$someRun",
      s"$someRun.log",
      s"-7-$someRun.log",
      s"7-$someRun.log.tmp",
      s".7-$someRun.log.crc",
      s"a7-$someRun.log",
      s"07-$someRun.log",
      s"1234567890123456789-$someRun.log",
      "7-1-1-1-1-1.log",
      s"7-${someRun}0.log",
      s"batches/7-$someRun.log",
      s"7-${"abcdef00-0000-4000-8000-000000000000".toUpperCase}.log",
      s"7-$someRun.log\n"
    ).foreach { name =>
      assert(LogLayout.parseBatchLog(name).isEmpty, name)
    }
  }

  test(
    "a data file's name is one that an index may hold, and differs by run, executor, sequence, attempt and random part"
  ) {
    val names = for {
      executor <- Seq("driver", "1", "12"); sequence <- Seq(0L, 3L); attempt <- Seq(0, 1); random <- Seq("a", "b")
    } yield LogLayout.dataFile(someRun, executor, sequence, attempt, random)
    names.foreach(name => assert(LogLayout.isDataFile(name), name))
    assert(names.distinct.size == names.size)
    assert(names.forall(_.startsWith(s"data/$someRun/")))
  }
}
