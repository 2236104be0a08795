package sparkdstl.log.runtime

import scala.concurrent.ExecutionContext

/** A world in which time stands still until it is moved, chance is no chance, and all happens on the test's thread. */
object TestRuntime {
  def apply(timer: Timer): ProtocolRuntime = new ProtocolRuntime(timer, new CountedNames, ExecutionContext.parasitic)
}
