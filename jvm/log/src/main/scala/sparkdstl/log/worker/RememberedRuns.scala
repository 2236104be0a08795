package sparkdstl.log.worker

import scala.collection.mutable

import sparkdstl.log.transport.RunId

/**
 * The runs that a process works for: all that are at work, and of the others those that were used last. A run that is forgotten
 * is not closed, so what still uses it is not disturbed; it is made anew with its next use. Thread-safe.
 *
 * @param idleLimit how many runs are kept that are not at work
 * @param isIdle    whether a run is not at work; called with the lock held
 */
final class RememberedRuns[R](idleLimit: Int, isIdle: R => Boolean) {

  // Guarded by this; the least recently used first.
  private val runs = mutable.LinkedHashMap.empty[RunId, R]

  /** The run; `make` is called without the lock. */
  def of(id: RunId)(make: => R): R = synchronized(used(id)).getOrElse {
    val made = make
    synchronized(used(id).getOrElse {
      forgetIdle()
      runs.put(id, made): Unit
      made
    })
  }

  /** The run if it is remembered; this is not a use of it. */
  def get(id: RunId): Option[R] = synchronized(runs.get(id))

  def all: Vector[R] = synchronized(runs.values.toVector)

  private def used(id: RunId): Option[R] = runs.remove(id).map { run =>
    runs.put(id, run): Unit
    run
  }

  /** Makes room for one more, which is in use before it is at work. */
  private def forgetIdle(): Unit = {
    val idle = runs.iterator.collect { case (id, run) if isIdle(run) => id }.toVector
    idle.take(idle.size - idleLimit + 1).foreach(runs.remove(_): Unit)
  }
}
