package sparkdstl.log.coordinator

import sparkdstl.log.coordinator.view.RetentionLimits

/**
 * Sizes that bound what a run does at once and what it keeps. Not for users to choose.
 *
 * @param retention of one round of retention
 * @param listEvery one commit entry in so many lists all snapshots, and those after it continue its list
 * @param fencingRuns the claims of so many runs are kept: more are not expected to be paused at the same time
 * @param carriedBytes of snapshots that a commit entry takes from the seals of its batch, if the query has few stores
 * @param fetchLength how many bytes of an entry's end are fetched to know its index: enough for some thousand segments
 */
final case class RunLimits(
    retention: RetentionLimits = RetentionLimits(),
    listEvery: Long = 64,
    fencingRuns: Int = 100,
    carriedBytes: Long = 256 * 1024,
    fetchLength: Int = 256 * 1024
)
