// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.play

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import sparkdstl.sim.model.Names
import sparkdstl.sim.world.{Chance, World}

/** A reader in another process: it pins a batch, and reads states from there on until it deletes its pin. */
private[play] final class PinningReader(world: World, chance: Chance) {
  import world.{config, model, objects, reach, verdict}

  private val process = world.newProcess("reader")
  // The path of the pin.
  private var pinned = Option.empty[String]

  /** Spark deletes plain snapshots, whatever is pinned; and without exclusive creation a batch may change. */
  def mayPin: Boolean = pinned.isEmpty && model.newest >= 0 && config.logsSnapshots && model.areLogged(from = 0) &&
    config.storage.createsExclusively && !model.isToolAtWork && !model.hasDamage

  /**
   * Creates a pin, and then looks whether Spark still retains the batch: it deletes `offsets/N` before it purges `commits/N`. Stock
   * Spark may have committed batches meanwhile.
   */
  def pin(): Unit = {
    val batch = math.max(0L, model.newest - chance.between(0, config.batchesToRetain))
    val path = s"${Names.Claims}/$batch-$Seconds-${new UUID(chance.nextInt().toLong, batch)}.pin"
    pinned = Some(path)
    objects.publish(path, "reader\n".getBytes(UTF_8), process)
    later(path, chance.millis(100, 0.1)) {
      val isRetained = objects.contains(Names.offset(batch)) && objects.contains(Names.commit(batch))
      if (isRetained && !model.isToolAtWork && model.areLogged(from = 0)) {
        reach.met("batch-pinned")
        verdict.note(s"a reader has pinned batch $batch")
        model.pins(batch)
        later(path, chance.millis(20000, 0.1))(unpin())
      } else {
        reach.met("pin-comes-too-late")
        unpin()
      }
    }
  }

  /** Ends the reader's pin. */
  def unpin(): Unit = pinned.foreach { path =>
    model.unpins()
    pinned = None
    objects.delete(path, process)
  }

  /** Acts later, if the reader still has this pin. */
  private def later(path: String, millis: Double)(act: => Unit): Unit =
    world.after(millis)(if (pinned.contains(path)) act)

  // Longer than any world, whose clocks may jump.
  private final val Seconds = 86400
}
