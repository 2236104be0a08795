// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

/**
 * A snapshot that a commit entry holds.
 *
 * @param key of the segment that Spark calls its zip
 * @param batch of the entry
 * @param files the data files with parts of it, relative to the log's base path; other snapshots may share them
 */
final case class HeldSnapshot(key: SegmentKey, batch: Long, files: Vector[String])

/**
 * The snapshots that existed when a commit entry was written, including its own.
 *
 * @param complete the batch of the entry that lists all snapshots: this entry, or the one whose list it continues
 * @param plainUpTo stores may have plain files up to this version, and only segments in the log above it; 0 if there were never
 *   plain files
 * @param held all snapshots, or those in entries after `complete`
 */
final case class SnapshotList(complete: Long, plainUpTo: Long, held: Vector[HeldSnapshot])
