// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import scala.collection.mutable

import sparkdstl.sim.machines.ObjectMap

/** The batches whose entry was created before a rollback and appeared after it. */
private[model] final class LateEntries(objects: ObjectMap, reader: StorageReader) {
  private val batches = mutable.Set.empty[Long]

  def add(batch: Long): Unit = batches += batch

  /** Whether one of these entries names the data file, and still exists. */
  def name(path: String): Boolean = Names.isDataFile(path) &&
    batches.exists(batch => objects.get(Names.commit(batch)).exists(reader.namedBy(batch, _)(path)))
}
