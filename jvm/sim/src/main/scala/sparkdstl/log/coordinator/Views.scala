package sparkdstl.log.coordinator

import sparkdstl.log.coordinator.view.Namer

/** Looks into what a run remembers, for the simulation. */
object Views {
  private val Looked = 100L

  /** What it remembers of entries that it knows to be gone; of the files that they name, the last before `batch`. */
  def leftOf(run: RunCoordinator, batch: Long): Vector[String] = {
    val view = run.view
    def isGone(of: Long) = !view.entries.contains(of)
    val requested = view.requested.toVector.filter(isGone).map(of => s"the deletion of commits/$of stays requested")
    val named = (math.max(0L, batch - Looked) to batch).filter(of =>
      isGone(of) && view.files.of(Namer.Entry(of)).nonEmpty
    )
      .map(of => s"commits/$of is gone, and names data files still")
    (requested ++ named).map(what => s"run ${run.run}: $what")
  }
}
