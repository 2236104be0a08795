// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import scala.concurrent.ExecutionContext

/** A runtime with a manual clock and fixed random numbers, on the test's thread. */
object TestRuntime {
  def apply(timer: Timer): ProtocolRuntime = new ProtocolRuntime(timer, new CountedNames, ExecutionContext.parasitic)
}
