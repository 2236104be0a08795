// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import scala.concurrent.ExecutionContext

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.log.runtime.{CountedNames, ManualTimer, ProtocolRuntime, RandomSource}

class SnapshotScheduleSuite extends AnyFunSuite {
  private val interval = 600000L

  private class Fixture(replayCost: Int = 0, minVersions: Int = 10, phase: Double = 0.5) {
    val timer = new ManualTimer
    private val chance: RandomSource = new RandomSource {
      private val names = new CountedNames
      override def nextDouble(): Double = phase
      override def nextUuid(): java.util.UUID = names.nextUuid()
    }
    private val options =
      LogOptions.default.updated(LogOptions.MaterializeInterval, interval)
        .updated(LogOptions.MaterializeReplayCost, replayCost)
    val schedule =
      new SnapshotSchedule(options, minVersions, new ProtocolRuntime(timer, chance, ExecutionContext.parasitic))

    def commit(bytes: Long = 100, changes: Boolean = true): Unit = schedule.committed(bytes, changes)
  }

  test("a changed store is due once an interval, first in the last quarter of the first interval")(new Fixture {
    commit()
    timer.advance(interval * 7 / 8 - 1)
    assert(!schedule.isDue)
    timer.advance(1)
    assert(schedule.isDue)
    schedule.taken(1000)
    commit()
    timer.advance(interval - 1)
    assert(!schedule.isDue)
    timer.advance(1)
    assert(schedule.isDue)
  })

  test("a late snapshot does not move the next due time")(new Fixture {
    commit()
    timer.advance(interval * 7 / 8 + 2 * interval + 5)
    schedule.taken(1000)
    commit()
    assert(!schedule.isDue)
    timer.advance(interval - 5)
    assert(schedule.isDue)
  })

  test("an unchanged store is not due before many versions have passed")(new Fixture(100000, minVersions = 1) {
    (1 to 99).foreach(_ => commit(changes = false))
    timer.advance(10 * interval)
    assert(!schedule.isDue)
    commit()
    assert(schedule.isDue)
    schedule.taken(1)
    (1 to 99).foreach(_ => commit(changes = false))
    timer.advance(10 * interval)
    assert(!schedule.isDue)
    commit(changes = false)
    assert(schedule.isDue)
  })

  test("an unchanged store is due only if its replay costs more than a snapshot")(new Fixture(replayCost = 50) {
    (1 to 300).foreach(_ => commit(bytes = 0, changes = false))
    assert(!schedule.isDue)
    (1 to 100).foreach(_ => commit(bytes = 0, changes = false))
    assert(schedule.isDue)
  })

  test("a store is due early when its replay costs more than its snapshot")(new Fixture(replayCost = 50) {
    // 50 * (bytes + 256 a version) against 4 MiB and the snapshot.
    schedule.loaded(10L << 20, 0, 0, 0, 1)
    (1 to 8).foreach(_ => commit(100 << 10))
    assert(!schedule.isDue)
    commit(100 << 10)
    assert(schedule.isDue, "the tenth version is the next")
    schedule.loaded(100L << 20, 9, 900 << 10, 0, 1)
    assert(!schedule.isDue, "the snapshot is larger")
    schedule.loaded(0, 400, 0, 0, 1)
    assert(schedule.isDue, "the number of commit entries counts")
  })

  test("however large its snapshot, a changed store is due after some hundred versions")(new Fixture(replayCost = 50) {
    for (_ <- 1 to 2) {
      schedule.taken(100L << 30)
      (1 to 174).foreach(_ => commit(bytes = 1))
      assert(!schedule.isDue)
      commit(bytes = 1)
      assert(schedule.isDue, "200 versions, less an eighth: the phase of this store")
    }
    schedule.loaded(100L << 30, 1000, 0, 0, 1)
    assert(schedule.isDue)
  })

  test("the replay of the last load counts")(new Fixture(replayCost = 50) {
    schedule.loaded(1000, 9, 1L << 20, 0, 1)
    assert(schedule.isDue)
    schedule.loaded(1000, 8, 1L << 20, 0, 1)
    assert(!schedule.isDue)
    schedule.loaded(1000, 0, 0, 0, 1)
    timer.advance(interval)
    assert(!schedule.isDue, "the store equals its snapshot")
  })

  test("a store is overdue after three runs without a snapshot if it has versions to replay")(new Fixture {
    Seq((2L, 3L, true), (1L, 3L, false), (50L, 2L, false)).foreach { case (versions, runs, isOverdue) =>
      schedule.loaded(1000, versions, 100, runs, 1)
      assert(schedule.isOverdue == isOverdue, (versions, runs))
    }
    schedule.loaded(1000, 2, 100, 3, 1)
    schedule.taken(1000)
    assert(!schedule.isOverdue, "a snapshot resets it")
  })

  test("a store that is loaded again is overdue when it replays as much as Spark allows")(new Fixture {
    schedule.loaded(1000, 10, 100, 0, 1)
    assert(!schedule.isOverdue, "this is the first load of the run")
    schedule.loaded(1000, 10, 100, 0, 2)
    assert(schedule.isOverdue)
    schedule.loaded(1000, 9, 100, 0, 2)
    assert(!schedule.isOverdue)
  })
}
