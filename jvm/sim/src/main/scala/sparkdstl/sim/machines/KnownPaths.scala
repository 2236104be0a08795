// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.machines

import scala.collection.mutable

import org.apache.hadoop.fs.Path

/** A cache of paths by name: Hadoop's paths are slow to create, and worlds use the same names often. */
final class KnownPaths extends (String => Path) {
  private val known = mutable.HashMap.empty[String, Path]

  override def apply(name: String): Path = known.getOrElseUpdate(name, new Path(name))
}
