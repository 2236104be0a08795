package sparkdstl.log.coordinator

import scala.collection.mutable
import scala.concurrent.Future

import sparkdstl.log.transport.{FromDriver, RunId, ToDriver}

/**
 * The runs that a driver coordinates: at most one on a checkpoint. A run is here from when its own query began it until it
 * ends; no question changes that. Thread-safe.
 */
final class CoordinatedRuns {
  import CoordinatedRuns._

  // Guarded by this.
  private val current = mutable.HashMap.empty[String, RunCoordinator]
  private val ended = mutable.LinkedHashSet.empty[RunId]

  /** The run is the current one on its checkpoint from now on. What was current before is returned, and is over. */
  def begin(run: RunCoordinator): Option[RunCoordinator] = synchronized {
    val before = current.put(run.id.root, run)
    before.foreach(old => noteEnded(old.id))
    before
  }

  /** The run is over. */
  def end(id: RunId): Option[RunCoordinator] = synchronized {
    val run = current.get(id.root).filter(_.id == id)
    run.foreach { _ =>
      current.remove(id.root)
      noteEnded(id)
    }
    run
  }

  /** The current run on a checkpoint. */
  def on(root: String): Option[RunCoordinator] = synchronized(current.get(root))

  def all: Vector[RunCoordinator] = synchronized(current.valuesIterator.toVector)

  /** Answers an executor for the run that it names. */
  def answer(from: String, id: RunId, message: ToDriver): Future[FromDriver] = {
    val run = synchronized {
      current.get(id.root) match {
        case Some(run) if run.id == id => Right(run)
        case Some(_) => Left(FromDriver.Superseded)
        case None => Left(if (ended(id)) FromDriver.Superseded else FromDriver.NotCoordinated)
      }
    }
    run.fold(Future.successful, _.answer(from, message))
  }

  /** An executor is gone. */
  def executorLost(executor: String, reason: String): Unit = all.foreach(_.executorLost(executor, reason))

  private def noteEnded(id: RunId): Unit = {
    ended += id
    if (ended.size > RememberedRuns) ended.remove(ended.head): Unit
  }
}

private object CoordinatedRuns {

  /** Late tasks of older ones are told that nobody coordinates them. */
  private val RememberedRuns = 1000
}
