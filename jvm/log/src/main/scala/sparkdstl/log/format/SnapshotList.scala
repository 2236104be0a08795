package sparkdstl.log.format

/**
 * A snapshot that a commit entry holds.
 *
 * @param key of what Spark calls its zip
 * @param batch of the entry
 * @param files
 *   the data files that hold parts of it, relative to the log's base path; other snapshots may consist of them as well
 */
final case class HeldSnapshot(key: SegmentKey, batch: Long, files: Vector[String])

/**
 * The snapshots that existed when a commit entry was written, its own included.
 *
 * @param complete the batch of the entry that lists all of them: this one, or the one whose list is continued here
 * @param plainUpTo
 *   changelogs and snapshots of versions above this are in the log alone; up to it there may be plain files. 0 if there
 *   never were any
 * @param held all of them, or those in entries above `complete`
 */
final case class SnapshotList(complete: Long, plainUpTo: Long, held: Vector[HeldSnapshot])
