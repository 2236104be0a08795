// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import scala.collection.mutable

import sparkdstl.sim.machines.ObjectMap

/**
 * Rebuilds the states of one store from storage alone. It remembers what it has rebuilt, so an instance serves one check, during
 * which storage does not change.
 *
 * @param upTo the newest batch whose list of snapshots counts
 * @param without a snapshot that is ignored
 * @param isDamaged whether objects are damaged: a damaged snapshot is then replaced by a replay
 */
private[model] final class StateRebuilder(
    val store: String,
    upTo: Long,
    without: Option[StateName],
    isDamaged: Boolean,
    reader: StorageReader,
    objects: ObjectMap
) {
  private val known = mutable.Map.empty[(Long, Option[String]), Either[String, Lineage]]

  /** The state of a version and checkpoint id, or why it cannot be rebuilt. */
  def rebuild(version: Long, id: Option[String]): Either[String, Lineage] =
    if (version == 0) Right(Lineage.Empty)
    else
      known.getOrElse(
        (version, id), {
          val name = StateName(store, version, id)
          val result = lookUpSnapshot(name) match {
            case SnapshotLookup.Found(files) => Right(Lineage(files.flatMap(_.lineage.tags)))
            case SnapshotLookup.Damaged(_) if isDamaged => replay(version, id)
            case SnapshotLookup.Damaged(why) => Left(s"${name.zip}: $why")
            case SnapshotLookup.NotThere =>
              objects.get(Names.snapshot(store, version, id)).map(_.bytes) match {
                case Some(snapshot) => Right(Lineage.decode(snapshot))
                case None => replay(version, id)
              }
          }
          known((version, id)) = result
          result
        }
      )

  private def lookUpSnapshot(state: StateName): SnapshotLookup =
    if (without.contains(state)) SnapshotLookup.NotThere else reader.snapshot(state, upTo, objects)

  private def replay(version: Long, id: Option[String]): Either[String, Lineage] = {
    val state = StateName(store, version, id)
    val bytes = reader.changelog(state, objects) match {
      case found: Lookup.Found => Right(found)
      case Lookup.Damaged(why) => Left(s"${state.changelog}: $why")
      case Lookup.NotInLog =>
        objects
          .get(s"${Names.State}/${state.changelog}")
          .map(stored => Lookup.Found(stored.bytes))
          .toRight(s"${state.changelog} does not exist; ${objects.story(Names.commit(version - 1))}")
    }
    bytes
      .flatMap(_.change.toRight(s"the content of ${state.changelog} is not what its writer wrote"))
      .filterOrElse(!_.needsSnapshot, s"${state.changelog} cannot be replayed, and its snapshot is not there")
      .flatMap(change => rebuild(version - 1, change.baseId).map(_ + change.tag))
  }
}
