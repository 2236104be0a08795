// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import sparkdstl.log.format.FormatSamples.{number, someRun, uuid}

class LogLayoutSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  test("the name of a data file is parsed into its components") {
    forAll(number, uuid, number) { (epoch, run, sequence) =>
      Seq("1", "driver", "12-3", "a-1-b").foreach { executor =>
        val path = LogLayout.dataFile(epoch, run, executor, sequence, "5eed")
        val name = DataFileName(epoch, run, executor, sequence, "5eed")
        assert(LogLayout.parseDataFile(path).contains(name))
        assert(name.path == path)
      }
      val directory = LogLayout.dataDirectory(epoch, run).stripPrefix("data/")
      assert(LogLayout.parseDataDirectory(directory).contains((epoch, run)))
    }
  }

  test("an executor's name cannot lead out of the run's directory") {
    Seq("..", "../x", "a/b", "", ".hidden", "_hidden", "é", "a:b", "x" * 1000, "\u0000").foreach { executor =>
      val path = LogLayout.dataFile(1, someRun, executor, 2, "a")
      assert(path.startsWith(s"data/1-$someRun/") && path.count(_ == '/') == 2, path)
      assert(LogLayout.isDataFile(path), path)
    }
  }

  test("an instance that a reader would refuse is refused on writing") {
    Seq("", "A", "a-b", "../x", "a" * 65).foreach { instance =>
      intercept[IllegalArgumentException](LogLayout.dataFile(1, someRun, "1", 2, instance))
    }
    intercept[IllegalArgumentException](LogLayout.dataFile(-1, someRun, "1", 2, "a"))
  }

  test("other paths are not data files") {
    val good = LogLayout.dataFile(1, someRun, "1", 2, "a")
    assert(LogLayout.isDataFile(good))
    val odd = Seq("", "/", "data", "data/a", "data/../b", s"data/1-$someRun/..", s"data/1-$someRun/../x", "epochs/a/b")
    val around =
      Seq("/" + good, "../" + good, "s3a://" + good, good + "\n", good + "\u0000", good + "/x", good + ".tmp")
    val directories =
      Seq("data/" -> "Data/", "data/" -> "data//", "/1-" -> "/01-", "/1-1111" -> "/1-111", "4111" -> "41AA")
    val names = Seq("/../1-2-a", "/1-02-a", "/1-2-A", "/.1-2-a", "/1:2-2-a", "/1-2").map("/1-2-a" -> _)
    val changed = (directories ++ names :+ (".log" -> "")).map { case (part, other) => good.replace(part, other) }
    (odd ++ around ++ changed).foreach { path =>
      assert(!LogLayout.isDataFile(path) && LogLayout.parseDataFile(path).isEmpty, path)
    }
  }

  test("epochs and commit entries are named by plain numbers") {
    forAll(number) { number =>
      val trial = LogLayout.trial(number, someRun)
      assert(LogLayout.parseTrial(trial).contains(number) && LogLayout.parseEpoch(trial).isEmpty)
      assert(LogLayout.parseTrial(number.toString).isEmpty)
      assert(LogLayout.parseEpoch(number.toString).contains(number))
      assert(LogLayout.parseBatch(number.toString).contains(number))
    }
    Seq("", "-1", "+1", "01", "1 ", "1\n", "1.tmp", ".1.crc", "٣", "1234567890123456789", "a").foreach { name =>
      assert(LogLayout.parseEpoch(name).isEmpty && LogLayout.parseBatch(name).isEmpty, name)
    }
  }

  test("only the directory of a run has an epoch") {
    Seq("", "1", someRun.toString, s"-$someRun", s"01-$someRun", s"1-${someRun}x", s"1_$someRun").foreach { name =>
      assert(LogLayout.parseDataDirectory(name).isEmpty, name)
    }
  }
}
