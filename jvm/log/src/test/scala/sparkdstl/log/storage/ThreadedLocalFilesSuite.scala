// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.RandomAccessFile
import java.nio.file.Files
import java.util.concurrent.{Executor, Executors}

import scala.concurrent.Await
import scala.concurrent.duration.DurationInt

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.LocalFiles.delete

class ThreadedLocalFilesSuite extends AnyFunSuite {
  private def withDirectory(test: java.nio.file.Path => Any): Unit = {
    val directory = Files.createTempDirectory("local-files")
    try test(directory): Unit
    finally delete(directory)
  }

  test("a file is read as it was written, until it is deleted")(withDirectory { directory =>
    val threads = Executors.newSingleThreadExecutor()
    val files = new ThreadedLocalFiles(directory, threads)
    Await.result(files.write("copy", Array[Byte](1, 2)), 60.seconds)
    assert(Await.result(files.read("copy"), 60.seconds).toSeq == Seq[Byte](1, 2))
    Await.result(files.delete("copy"), 60.seconds)
    assert(Await.ready(files.read("copy"), 60.seconds).value.exists(_.isFailure))
    threads.shutdown()
    assert(Await.ready(files.read("copy"), 60.seconds).value.exists(_.isFailure))
  })

  test("a read without memory fails, and the handler of the process gets the error")(withDirectory { directory =>
    val large = new RandomAccessFile(directory.resolve("large").toFile, "rw")
    large.setLength(Int.MaxValue + 1L)
    large.close()
    var handled = Vector.empty[Throwable]
    val threads: Executor = task =>
      try task.run()
      catch { case error: Throwable => handled :+= error }
    val read = new ThreadedLocalFiles(directory, threads).read("large")
    assert(read.isCompleted && read.value.exists(_.isFailure))
    assert(handled.map(_.getClass) == Vector(classOf[OutOfMemoryError]))
  })
}
