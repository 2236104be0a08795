// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.error

import java.io.IOException

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

class CausesSuite extends AnyFunSuite {
  test("the description of an error shows its root cause once") {
    val error = new IOException("outer", new IOException("middle", new IOException("root")))
    assert(Causes.describe(error) == "java.io.IOException: outer; caused by java.io.IOException: root")
    assert(Causes.describe(new IOException(new IOException("root"))) ==
      "java.io.IOException: java.io.IOException: root")
    assert(Causes.describe(new IOException("alone")) == "java.io.IOException: alone")
  }

  test("all are closed, and the first error has the others") {
    var closed = Vector.empty[Int]
    def close(number: Int): Unit = {
      closed :+= number
      if (number > 1) throw new IOException(number.toString)
    }
    val error = intercept[IOException](Causes.closingAll(Iterator(1, 2, 3, 4))(close))
    assert(closed == Vector(1, 2, 3, 4) && error.getMessage == "2")
    assert(error.getSuppressed.map(_.getMessage).toSeq == Seq("3", "4"))
    Causes.closingAll(Iterator(1))(close)
    val shared = new IOException("shared")
    assert(intercept[IOException](Causes.closingAll(Iterator(1, 2))(_ => throw shared)) eq shared)
  }

  test("all are closed after an interrupt") {
    var closed = Vector.empty[Int]
    intercept[InterruptedException](Causes.closingAll(Iterator(1, 2)) { number =>
      closed :+= number
      if (number == 1) throw new InterruptedException
    })
    assert(closed == Vector(1, 2))
  }

  test("a sentence that ends with an error's text ends once") {
    val entry = new Path("/c/commits/1")
    for {
      text <- Seq("Is it down?", "It is down.", "It is down", "It is down. \n")
      cause = new IOException(text)
      error <- Seq(
        ProtocolErrors.sealUnanswered(1, 1, 1, cause),
        ProtocolErrors.materializationFailed("0/0", 1, 1, cause),
        ProtocolErrors.commitFailed(entry, cause),
        ProtocolErrors.commitUnknown(entry, 1, cause),
        ProtocolErrors.unreadable(entry, cause),
        ProtocolErrors.missingPartitions(entry, Seq("0/0"), cause),
        ProtocolErrors.notDeleted(entry, cause),
        ProtocolErrors.unusableBasePath(entry, cause),
        ProtocolErrors.unusableCheckpoint(entry, cause)
      )
    } assert(error.getMessage.contains("down. ") && !error.getMessage.contains("?."), error.getMessage)
  }

  test("texts that Spark continues with a period do not end with one") {
    val options = Seq(
      LogErrors.unknownOption("spark.", "upload.timeot", "upload.timeout"),
      LogErrors.invalidOption("spark.", "upload.numThreads", "0", "a whole number from 1 to 256")
    )
    options.foreach(error => assert(error.getMessage.last.isLetterOrDigit, error.getMessage))
  }
}
