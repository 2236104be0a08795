// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

/**
 * A snapshot that the commit entry of `batch` holds: the key of the segment that Spark calls its zip, and the data files with
 * parts of it, relative to the log's base path. Other snapshots may share these files.
 */
final case class HeldSnapshot(key: SegmentKey, batch: Long, files: Vector[String])

/**
 * The snapshots that existed when a commit entry was written, including its own. The entry of batch `complete` lists all
 * snapshots: this entry, or the one whose list it continues; `held` are all snapshots, or those in entries after it. Stores may
 * have plain files up to version `plainUpTo`, and only segments in the log above it; 0 if there were never plain files.
 */
final case class SnapshotList(complete: Long, plainUpTo: Long, held: Vector[HeldSnapshot])
