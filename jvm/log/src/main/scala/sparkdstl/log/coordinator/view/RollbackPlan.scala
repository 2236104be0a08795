// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

/**
 * The entries that are deleted at once when the deletion of the newest entry is requested: by a rollback, or by a tool that
 * purges everything. The newest is first, so that an interrupted deletion leaves a consistent checkpoint. If Spark has begun
 * the batch `unlessBegun`, no entry is deleted.
 */
private[coordinator] final case class RollbackPlan(entries: Vector[Long], unlessBegun: Option[Long])

private[coordinator] object RollbackPlan {

  /**
   * Deletes the newest entry and the unbroken run of entries below it whose deletion was requested before. If that run reaches
   * the oldest entry, the requests were a purge of all earlier entries: then only the newest entry is deleted, and the query
   * runs the newest begun batch again on the state before it. `there` has the batches on storage, in ascending order.
   */
  def of(there: Vector[Long], requested: Set[Long]): RollbackPlan = {
    val newest = there.last
    val below = there.init.reverse
    val withIt = below.takeWhile(requested)
    if (withIt.size < below.size) RollbackPlan(newest +: withIt, None)
    else RollbackPlan(Vector(newest), Some(newest + 1))
  }
}
