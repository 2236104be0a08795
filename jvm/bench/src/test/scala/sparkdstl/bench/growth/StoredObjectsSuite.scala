// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.growth

import java.nio.file.{Files, Path}

import sparkdstl.bench.Asked
import sparkdstl.testing.TemporaryDirectory

import org.scalatest.funsuite.AnyFunSuite

class StoredObjectsSuite extends AnyFunSuite {

  private def store(root: Path, name: String, bytes: Int): Unit = {
    val file = root.resolve(name)
    Files.createDirectories(file.getParent): Unit
    Files.write(file, new Array[Byte](bytes)): Unit
  }

  test("objects are counted by kind, without those that are not published yet") {
    TemporaryDirectory.within { directory =>
      val root = directory.toPath
      Seq(
        "commits/7",
        "commits/8",
        "offsets/8",
        "state/0/3/7.changelog",
        "state/0/3/5.zip",
        "state/0/3/SSTs/a.sst",
        "dstl/data/1-run/driver-1-x.log",
        "dstl/epochs/1",
        "metadata"
      ).foreach(store(root, _, 10))
      store(root, "commits/.9.publishing", 1000)
      assert(new StoredObjects(root).byKind() == Map(
        "commits" -> Asked(2, 20),
        "offsets" -> Asked(1, 10),
        "changelog" -> Asked(1, 10),
        "snapshot" -> Asked(2, 20),
        "data file" -> Asked(1, 10),
        "epoch" -> Asked(1, 10),
        "other" -> Asked(1, 10)
      ))
    }
  }
}
