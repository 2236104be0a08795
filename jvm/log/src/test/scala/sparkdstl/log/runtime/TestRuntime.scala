package sparkdstl.log.runtime

import java.util.UUID

import scala.concurrent.ExecutionContext

/** A world in which time stands still until it is moved, chance is no chance, and all happens on the test's thread. */
object TestRuntime {
  def apply(timer: Timer): ProtocolRuntime = new ProtocolRuntime(timer, NoChance, ExecutionContext.parasitic)

  /** Always in the middle. */
  private object NoChance extends RandomSource {
    override def nextDouble(): Double = 0.5

    override def nextUuid(): UUID = new UUID(0, 0)
  }
}
