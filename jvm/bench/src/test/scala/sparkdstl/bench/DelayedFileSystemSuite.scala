// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import java.io.File
import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.TemporaryDirectory

class DelayedFileSystemSuite extends AnyFunSuite {

  private def configuration: Configuration = DelayedFileSystem.configure(new Configuration(false))

  private def within(contender: String)(check: (FileSystem, Path) => Assertion): Assertion = TemporaryDirectory.within {
    directory =>
      DelayedFileSystem.setRoot(directory.getPath)
      val file = new Path(s"${DelayedFileSystem.Scheme}://${directory.getPath}/$contender/state/1.changelog")
      val fileSystem = FileSystem.newInstance(file.toUri, configuration)
      val stream = fileSystem.create(file)
      stream.write(Array.tabulate[Byte](1000)(_.toByte))
      stream.close()
      check(fileSystem, file)
  }

  private def read(contender: String): Asked = DelayedFileSystem.requestsOf(contender)("GET" -> "changelog")

  test("a read of a range is a request with the bytes of the range") {
    within("range") { (fileSystem, file) =>
      val stream = fileSystem.open(file)
      val content = new Array[Byte](100)
      stream.readFully(50L, content)
      stream.close()
      assert(content.head == 50 && content.last == 149.toByte)
      assert(read("range") == Asked(1, 100))
    }
  }

  test("a stream counts the bytes that were read, without those that were skipped") {
    within("stream") { (fileSystem, file) =>
      val stream = fileSystem.open(file)
      assert(stream.read() == 0)
      stream.seek(900)
      assert(stream.getPos == 900)
      assert(stream.readAllBytes().length == 100)
      stream.close()
      assert(read("stream") == Asked(1, 101))
    }
  }

  test("an executor reads root and delays from the specification that its configuration names") {
    within("told") { (_, file) =>
      val directory = new File(file.getParent.getParent.getParent.toUri.getPath)
      val spec = new File(directory, "spec.json").toPath
      Files.writeString(spec, s"""{"root": "$directory/told", "delays": null}"""): Unit
      val ofExecutor = configuration
      ofExecutor.set(DelayedFileSystem.SpecEntry, spec.toString)
      FileSystem.newInstance(file.toUri, ofExecutor).open(file).close()
      assert(DelayedFileSystem.requestsOf("state")("GET" -> "changelog") == Asked(1, 0))
    }
  }
}
