// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import sparkdstl.log.coordinator.view.Namer

/** Gives the simulation access to a run's view of the log. */
object Views {
  private val Looked = 100L

  /** Remains of deleted entries in the view. Data files are checked only for the last entries before `batch`. */
  def leftOf(run: RunCoordinator, batch: Long): Vector[String] = {
    val view = run.view
    def isGone(of: Long) = !view.entries.contains(of)
    val requested = view.requested.toVector.filter(isGone).map(of => s"the deletion of commits/$of stays requested")
    val named = (math.max(0L, batch - Looked) to batch).filter(of =>
      isGone(of) && view.files.of(Namer.Entry(of)).nonEmpty
    )
      .map(of => s"commits/$of is deleted, but still names data files")
    (requested ++ named).map(what => s"run ${run.run}: $what")
  }
}
