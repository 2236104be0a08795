// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.util.concurrent.TimeUnit

import scala.collection.mutable

import org.slf4j.LoggerFactory

import sparkdstl.log.metrics.MetricGroup
import sparkdstl.log.runtime.{ProtocolRuntime, RepeatedReport}

/** The stores that a process is loading. Logs the progress of slow loads every ten seconds. Thread-safe. */
final class RecoveryProgress(runtime: ProtocolRuntime) extends MetricGroup("recovery") {
  private val logger = LoggerFactory.getLogger(classOf[RecoveryProgress])
  // Guarded by this.
  private val underWay = mutable.LinkedHashSet.empty[LoadingStore]

  gauge("storesLoading")(loading.size.toLong)
  gauge("snapshotBytesToDo")(loading.map(_.bytesToDo).sum)
  gauge("changelogsToDo")(loading.map(_.changelogsToDo).sum)
  private val loaded = counter("storesLoaded")
  private val fetched = counter("snapshotBytesFetched")
  private val local = counter("snapshotBytesLocal")

  /** Begins the load of a version of the store with this name in logs. The caller always calls [[LoadingStore.end]]. */
  def begin(name: String, version: Long): LoadingStore = {
    val store = new LoadingStore(name, version)
    synchronized(underWay += store): Unit
    store.reports.start()
    store
  }

  private def loading: Vector[LoadingStore] = synchronized(underWay.toVector)

  final class LoadingStore private[RecoveryProgress] (name: String, version: Long) {
    private val startedNanos = runtime.timer.nowNanos
    private[RecoveryProgress] val reports = new RepeatedReport(runtime.timer)(() => logger.info(text))

    // Guarded by this.
    private var bytes = 0L
    private var done = 0L
    private var at = -1L

    /** Begins the fetch of a snapshot of `length` bytes, and resets the progress. */
    def fetching(length: Long): Unit = synchronized {
      bytes = length
      done = 0
    }

    def fetched(count: Long): Unit = {
      RecoveryProgress.this.fetched(count)
      synchronized(done += count)
    }

    def foundLocally(count: Long): Unit = {
      local(count)
      synchronized(done += count)
    }

    /** Records the version after a snapshot or a changelog. */
    def reached(current: Long): Unit = synchronized { at = current }

    def end(isLoaded: Boolean): Unit = {
      reports.end()
      if (isLoaded) loaded()
      RecoveryProgress.this.synchronized(underWay -= this): Unit
    }

    private[RecoveryProgress] def bytesToDo: Long = synchronized(math.max(0, bytes - done))

    /** 0 before the snapshot is loaded. */
    private[RecoveryProgress] def changelogsToDo: Long = synchronized(if (at < 0) 0 else version - at)

    private def text: String = {
      val seconds = TimeUnit.NANOSECONDS.toSeconds(runtime.timer.nowNanos - startedNanos)
      val (there, of, current) = synchronized((done, bytes, at))
      val changelogs =
        if (current < 0) "then changelogs up to that version" else s"${version - current} changelogs are left"
      s"Version $version of $name has been loading for $seconds s: $there of $of bytes of its snapshot are local, " +
        s"$changelogs. ${loading.size} stores are being loaded in this process, ${loaded.value} are loaded."
    }
  }
}
