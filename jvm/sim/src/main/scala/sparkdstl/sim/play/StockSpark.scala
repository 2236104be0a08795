// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.play

import java.nio.charset.StandardCharsets.UTF_8

import sparkdstl.sim.model.{Change, CommitContent, Lineage, Names, Win}
import sparkdstl.sim.world.{Chance, World}

/** Stock Spark on the same checkpoint: it writes plain changelogs and plain entries. */
private[play] final class StockSpark(world: World, chance: Chance) {
  import world.{config, model, objects}

  private val shell = world.newProcess("stock")

  /** Writes a checkpoint with the next batch `next` and as many batches as Spark retains. */
  def begin(next: Long): Unit = {
    val oldest = next - math.min(next, config.batchesToRetain.toLong)
    if (oldest > 0) batch(oldest - 1, withSnapshot = true)
    (oldest until next).foreach(batch(_, withSnapshot = false))
    if (next > 0) world.reach.met("checkpoint-is-taken-over-from-stock")
  }

  def batch(batch: Long, withSnapshot: Boolean): Unit = {
    val before = model.committed(batch - 1)
    val wins = model.stores.map { store =>
      val base = model.state(store, batch).getOrElse(Lineage.Empty)
      val id = if (config.checkpointFormat == 2) Some(chance.nextUuid().toString) else None
      store -> Win(0, Change(s"stock/$batch:$store:0", base.fingerprint, before.flatMap(_.intent.wins(store).id)), id)
    }.toMap
    if (!objects.contains(Names.offset(batch)))
      objects.publish(Names.offset(batch), s"stock plans $batch".getBytes(UTF_8), shell)
    wins.foreach { case (store, Win(_, change, id)) =>
      val name = s"${batch + 1}${id.fold("")("_" + _)}"
      if (withSnapshot)
        objects.publish(Names.snapshot(store, batch + 1, id), Lineage.encode(Lineage.Empty + change.tag), shell)
      else objects.publish(s"${Names.State}/$store/$name.changelog", Change.encode(change, 60), shell)
    }
    val intent = model.intend("stock Spark", batch, wins)
    val ids = wins.flatMap { case (store, win) => win.id.map(store -> _) }
    if (!objects.contains(Names.commit(batch)))
      objects.publish(Names.commit(batch), CommitContent.encode(intent.number, ids), shell)
  }
}
