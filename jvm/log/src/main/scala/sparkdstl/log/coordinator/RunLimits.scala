// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import sparkdstl.log.coordinator.view.RetentionLimits

/**
 * Internal limits of a run. Users cannot set them.
 *
 * @param listEvery one commit entry in so many lists all snapshots; the others continue its list
 * @param fencingRuns the number of claims that are kept: the maximum of runs that can be paused at the same time
 * @param carriedBytes inline bytes of carried snapshots per commit entry, for a query with few stores
 * @param fetchLength bytes of an entry's end that are fetched for its index: enough for some thousand segments
 */
final case class RunLimits(
    retention: RetentionLimits = RetentionLimits(),
    listEvery: Long = 64,
    fencingRuns: Int = 100,
    carriedBytes: Long = 256 * 1024,
    fetchLength: Int = 256 * 1024
)
