// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import scala.collection.mutable

import sparkdstl.log.transport.RunId

/**
 * The runs that a process works for: all active ones, and the most recently used idle ones, at most `idleLimit`. Other runs are
 * removed without being closed, so that their users are not disturbed, and made again at their next use. `isIdle` is called
 * with the lock held. Thread-safe.
 */
final class RememberedRuns[R](idleLimit: Int, isIdle: R => Boolean) {

  // Guarded by this; the least recently used first.
  private val runs = mutable.LinkedHashMap.empty[RunId, R]

  /** Returns the run, or makes and adds it. `make` is called without the lock. */
  def of(id: RunId)(make: => R): R = synchronized(used(id)).getOrElse {
    val made = make
    synchronized(used(id).getOrElse {
      forgetIdle()
      runs.put(id, made): Unit
      made
    })
  }

  /** The run if it is remembered. Does not count as a use. */
  def get(id: RunId): Option[R] = synchronized(runs.get(id))

  def all: Vector[R] = synchronized(runs.values.toVector)

  private def used(id: RunId): Option[R] = runs.remove(id).map { run =>
    runs.put(id, run): Unit
    run
  }

  /** Makes room for one more run, which is idle at first. */
  private def forgetIdle(): Unit = {
    // Scala 2.12 would evaluate the condition of a `collect` twice, and a run may stop being idle between.
    val idle = runs.iterator.filter { case (_, run) => isIdle(run) }.map(_._1).toVector
    idle.take(idle.size - idleLimit + 1).foreach(runs.remove(_): Unit)
  }
}
