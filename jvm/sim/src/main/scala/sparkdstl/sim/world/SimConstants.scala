// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.world

import sparkdstl.log.config.{LogOptions, RetryPolicy}
import sparkdstl.log.config.LogOptions._
import sparkdstl.log.coordinator.RunLimits
import sparkdstl.log.coordinator.view.RetentionLimits

/**
 * Sizes, times and limits of the protocol in one world. They are small, so that small states and a dozen batches
 * reach the same branches as large ones.
 *
 * @param inlineBudget the bytes of small segments that a driver holds
 * @param minDeltas the number of versions from one snapshot to the next, unless the interval is over
 * @param fetchLength the number of bytes of an entry that an executor fetches first
 * @param cacheBytes the size of the cache of entries in memory
 * @param zipBytes the minimal size of a snapshot's zip
 */
final case class SimConstants(
    options: LogOptions,
    limits: RunLimits,
    inlineBudget: Long,
    minDeltas: Int,
    fetchLength: Int,
    cacheBytes: Long,
    zipBytes: Int
) {

  /** The time after which no request takes effect; shorter if the claims of few runs are kept. */
  def latestMillis: Double = if (limits.fencingRuns < RunLimits().fencingRuns) 8000 else 600000

  /** The first read lengths of entries, and the read length of an exclusive creation after a conflict. */
  def tailLengths: Set[Int] = Set(fetchLength, limits.fetchLength, 64 * 1024)

  /**
   * The maximal number of versions from one snapshot to the next of an undisturbed query with at least 1.5 seconds
   * between batches.
   */
  def versionsPerSnapshot: Long = {
    val ofInterval = options.materializeIntervalMs / 1000 + 1
    val cost = options.materializeReplayCost.toLong
    val ofCost = if (cost == 0) Long.MaxValue else math.max(minDeltas.toLong, (5L << 20) / (256 * cost) + 1)
    math.min(ofInterval, ofCost) + 2 * options.persistDelayMs / 1000
  }
}

object SimConstants {
  val Usual: SimConstants = SimConstants(
    LogOptions.default
      .updated(CommitTimeout, 60000L)
      .updated(InlineMaxSegmentSize, 300L)
      .updated(InlineMaxBatchSize, 1200L)
      .updated(PreemptivePersistThreshold, 500L)
      .updated(PersistSizeThreshold, 900L)
      .updated(PersistDelay, 200L)
      .updated(MaterializeInterval, 3000L)
      .updated(UploadMaxInFlight, 64 * 1024L)
      .updated(UploadTimeout, 2000L)
      .updated(NextAttemptDelay, 100L),
    RunLimits(fetchLength = 4096),
    inlineBudget = 8 * 1024,
    minDeltas = 3,
    fetchLength = 4096,
    cacheBytes = 64 * 1024,
    zipBytes = 0
  )

  /** In most worlds some constants differ from the usual ones. */
  def draw(chance: Chance): SimConstants = {
    val share = chance.pick(Vector(0.0, 0.3, 0.6))
    def some[T](usual: T, others: T*): T = if (chance.happens(share)) chance.pick(others.toVector) else usual
    val options = Vector[LogOptions => LogOptions](
      _.updated(CommitTimeout, chance.pick(Vector(15000L, 200000L))),
      _.updated(InlineMaxSegmentSize, chance.pick(Vector(0L, 70L, 3000L))),
      _.updated(InlineMaxBatchSize, chance.pick(Vector(150L, 6000L))),
      _.updated(PreemptivePersistThreshold, chance.pick(Vector(60L, 2000L))),
      _.updated(PersistSizeThreshold, chance.pick(Vector(1L, 5000L))),
      _.updated(PersistDelay, chance.pick(Vector(10L, 4000L))),
      _.updated(MaterializeInterval, chance.pick(Vector(1000L, 8000L, 20000L))),
      _.updated(MaterializeReplayCost, chance.pick(Vector(0, 3000, 20000))),
      _.updated(UploadMaxInFlight, chance.pick(Vector(400L, 1500L))),
      _.updated(UploadTimeout, chance.pick(Vector(300L, 15000L))),
      _.updated(UploadMaxAttempts, chance.pick(Vector(1, 2))),
      _.updated(NextAttemptDelay, chance.pick(Vector(10L, 2000L))),
      _.updated[RetryPolicy](UploadRetryPolicy, RetryPolicy.Fixed)
    )
    SimConstants(
      options.foldLeft(Usual.options)((all, change) => if (chance.happens(share)) change(all) else all),
      RunLimits(
        RetentionLimits(some(100, 1, 2), some(10, 1), some(1000, 3)),
        some(64L, 1L, 2L, 5L),
        some(Usual.limits.fencingRuns, 12, 20),
        some(256L * 1024, 1L, 150L),
        some(4096, 200)
      ),
      inlineBudget = some(Usual.inlineBudget, 700L, 2000L),
      minDeltas = some(Usual.minDeltas, 1, 6),
      fetchLength = some(Usual.fetchLength, 150),
      cacheBytes = some(Usual.cacheBytes, 8L * 1024, 800L),
      zipBytes = some(Usual.zipBytes, 400)
    )
  }
}
