// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import java.io.File
import java.nio.file.Files

/** A directory that exists during one test. */
object TemporaryDirectory {
  def within[T](test: File => T): T = {
    val directory = Files.createTempDirectory("dstl-test")
    try test(directory.toFile)
    finally LocalFiles.delete(directory)
  }
}
