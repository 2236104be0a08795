// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import scala.concurrent.{ExecutionContext, Future, Promise}

import org.scalatest.funsuite.AnyFunSuite

class CoordinatedRunsSuite extends AnyFunSuite {
  private implicit val executor: ExecutionContext = ExecutionContext.parasitic
  private val root = "memory:/checkpoint"

  test(
    "a run waits for the requests of all ended runs on its checkpoint, also if the start of one between was interrupted"
  ) {
    val runs = new CoordinatedRuns
    val (first, second, elsewhere) = (Promise[Unit](), Promise[Unit](), Promise[Unit]())
    runs.busyUntil(root, first.future)
    runs.busyUntil("memory:/other", elsewhere.future)
    // The second run was stopped while it waited for the first.
    runs.busyUntil(root, second.future)
    second.success(())
    val quiet = runs.whenQuiet(root)
    assert(!quiet.isCompleted)
    first.success(())
    assert(quiet.isCompleted)
  }

  test("a run that ends with an error, or long ago, holds up no other") {
    val runs = new CoordinatedRuns
    assert(runs.whenQuiet(root).isCompleted)
    runs.busyUntil(root, Future.failed(new IllegalStateException("for this test")))
    runs.busyUntil(root, Future.unit)
    assert(runs.whenQuiet(root).value.exists(_.isSuccess))
  }
}
