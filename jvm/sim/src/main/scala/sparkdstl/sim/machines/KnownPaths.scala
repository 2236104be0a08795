package sparkdstl.sim.machines

import scala.collection.mutable

import org.apache.hadoop.fs.Path

/** The path of a name. Hadoop's paths are slow to make, and the same names come again and again. */
final class KnownPaths extends (String => Path) {
  private val known = mutable.HashMap.empty[String, Path]

  override def apply(name: String): Path = known.getOrElseUpdate(name, new Path(name))
}
