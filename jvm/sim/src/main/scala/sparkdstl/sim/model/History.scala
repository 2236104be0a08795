// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

/** The change of a store's winner, and the checkpoint id of the state that it made. */
final case class Win(attempt: Long, change: Change, id: Option[String])

/** A driver is about to write a commit entry. */
final case class Intent(number: Long, who: String, batch: Long, wins: Map[String, Win], madeAtNanos: Long)

/** A committed entry: the states after its batch and the time at which it appeared. */
final case class Committed(intent: Intent, states: Map[String, Lineage], tainted: Boolean, atNanos: Long)

/** The scope of a check: a change of an object outside `seen` cannot change its result for the same versions. */
private[model] final case class Checked(newest: Long, retained: Map[String, Long], seen: collection.Set[String]) {
  def covers(newestNow: Long, retainedNow: Map[String, Long]): Boolean = newest == newestNow && retained == retainedNow
}
