package sparkdstl.log.coordinator.view

/**
 * Which entries are deleted at once because the deletion of the newest entry is requested: a rollback by a user, or a tool
 * that purges everything.
 *
 * @param entries the newest first, so that a stop in between leaves a checkpoint that is whole
 * @param unlessBegun the batch that keeps them all if Spark has begun it
 */
private[coordinator] final case class RollbackPlan(entries: Vector[Long], unlessBegun: Option[Long])

private[coordinator] object RollbackPlan {

  /**
   * With the newest entry goes the unbroken run of entries below it whose deletion was requested before, unless that run
   * reaches the oldest. Then it was a purge of everything that came before, and what runs again is the newest batch that
   * was begun, on the state before it.
   *
   * @param there batches of the entries that are on storage, in ascending order: at least one
   */
  def of(there: Vector[Long], requested: Set[Long]): RollbackPlan = {
    val newest = there.last
    val below = there.init.reverse
    val withIt = below.takeWhile(requested)
    if (withIt.size < below.size) RollbackPlan(newest +: withIt, None)
    else RollbackPlan(Vector(newest), Some(newest + 1))
  }
}
