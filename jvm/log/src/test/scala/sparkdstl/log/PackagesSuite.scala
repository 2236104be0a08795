// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log

import java.nio.file.Paths

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.PackageCycles

class PackagesSuite extends AnyFunSuite {
  private val sources = PackageCycles.sources(Paths.get("src/main/scala"))

  test("no two packages depend on each other") {
    assert(sources.size > 10 && PackageCycles.in(sources) == Map.empty)
  }

  test("a cycle of packages is found, and package names in comments are ignored") {
    val comment = "package sparkdstl.log.error\n/* sparkdstl.log.storage.Attempt */\n// sparkdstl.log.storage.Attempt"
    val imported = "package sparkdstl.log.error\nimport sparkdstl.log.storage.{Attempt, Payload}"
    def cycles(more: String) =
      PackageCycles.in(sources.updatedWith("sparkdstl.log.error")(_.map(_ :+ more))).keySet
    assert(cycles(comment).isEmpty)
    assert(cycles(imported) == Set("error", "runtime", "storage").map("sparkdstl.log." + _))
  }
}
