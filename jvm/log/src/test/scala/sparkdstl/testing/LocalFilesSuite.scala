package sparkdstl.testing

import java.nio.file.{Files, Path}

import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

class LocalFilesSuite extends AnyFunSuite {

  private def within(test: Path => Assertion): Assertion =
    TemporaryDirectory.within(directory => test(directory.toPath))

  private def file(root: Path, name: String): Unit = {
    Files.createDirectories(root.resolve(name).getParent)
    Files.writeString(root.resolve(name), name): Unit
  }

  test("all files are listed, with their paths from there; of what is not there, none") {
    within { root =>
      Seq("b/2", "a", "b/.hidden", "b/c/1").foreach(file(root, _))
      Files.createDirectory(root.resolve("empty"))
      assert(LocalFiles.below(root) == Seq("a", "b/.hidden", "b/2", "b/c/1"))
      assert(LocalFiles.below(root.resolve("gone")).isEmpty)
    }
  }

  test("what others make and delete meanwhile does not matter") {
    within { root =>
      file(root, "kept")
      @volatile var isOver = false
      val other = new Thread(() =>
        while (!isOver) {
          file(root, "other/file")
          LocalFiles.delete(root.resolve("other"))
        }
      )
      other.start()
      try Seq.fill(5000)(LocalFiles.below(root)).foreach(found => assert(found.contains("kept")))
      finally {
        isOver = true
        other.join()
      }
      assert(LocalFiles.below(root) == Seq("kept"))
    }
  }

  test("a copy has the same files and directories, and what is deleted is gone") {
    within { root =>
      Seq("from/a", "from/b/c").foreach(file(root, _))
      Files.createDirectory(root.resolve("from/empty"))
      LocalFiles.copy(root.resolve("from"), root.resolve("to"))
      assert(LocalFiles.below(root.resolve("to")) == Seq("a", "b/c"))
      assert(Files.isDirectory(root.resolve("to/empty")))
      assert(Files.readString(root.resolve("to/b/c")) == "from/b/c")
      LocalFiles.delete(root.resolve("from"))
      assert(Files.list(root).count() == 1)
    }
  }
}
