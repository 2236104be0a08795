// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.error

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

class ErrorPageSuite extends AnyFunSuite {
  private val condition = "\"(DSTL_[A-Z_]+)\"".r

  test("the page of errors has one row of four short cells for each condition in the main code") {
    val inCode = Seq("src/main", "../spark/src/main")
      .flatMap(directory => scalaFiles(Paths.get(directory)))
      .flatMap(file => condition.findAllMatchIn(Files.readString(file)).map(_.group(1)))
    val rows = Files.readAllLines(Paths.get("../../docs/errors.md")).asScala.filter(_.startsWith("| `"))
    assert(rows.map(_.split('|')(1).trim.stripPrefix("`").stripSuffix("`")).sorted == inCode.distinct.sorted)
    rows.foreach { row =>
      assert(row.count(_ == '|') == 5, row)
      row.split('|').foreach(cell => assert(cell.trim.split("\\s+").length <= 20, cell))
    }
  }

  private def scalaFiles(directory: Path): Seq[Path] = {
    val walk = Files.walk(directory)
    try walk.iterator.asScala.filter(_.toString.endsWith(".scala")).toVector
    finally walk.close()
  }
}
