package sparkdstl.log.read

import java.util.concurrent.TimeUnit

import scala.collection.mutable

import org.slf4j.LoggerFactory

import sparkdstl.log.metrics.MetricGroup
import sparkdstl.log.runtime.{ProtocolRuntime, RepeatedReport}

/** The stores that a process is loading. Each that takes long is reported in the log, every ten seconds. Thread-safe. */
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

  /**
   * A store is about to be loaded. The caller ends it, however the load ends.
   *
   * @param name    names the store in logs
   * @param version that it is to have
   */
  def begin(name: String, version: Long): LoadingStore = {
    val store = new LoadingStore(name, version)
    synchronized(underWay += store): Unit
    store.reports.start()
    store
  }

  private def loading: Vector[LoadingStore] = synchronized(underWay.toVector)

  /** One store, until it is loaded. */
  final class LoadingStore private[RecoveryProgress] (name: String, version: Long) {
    private val startedNanos = runtime.timer.nowNanos
    private[RecoveryProgress] val reports = new RepeatedReport(runtime.timer)(() => logger.info(text))

    // Guarded by this.
    private var bytes = 0L
    private var done = 0L
    private var at = -1L

    /** A snapshot of `length` bytes is being fetched. Bytes of another one no longer count. */
    def fetching(length: Long): Unit = synchronized {
      bytes = length
      done = 0
    }

    /** So many bytes of it have come from storage. */
    def fetched(count: Long): Unit = {
      RecoveryProgress.this.fetched(count)
      synchronized(done += count)
    }

    /** So many bytes of it were on the local disk. */
    def foundLocally(count: Long): Unit = {
      local(count)
      synchronized(done += count)
    }

    /** The store has this version now, from a snapshot or a changelog. */
    def reached(current: Long): Unit = synchronized { at = current }

    /** The load has ended. */
    def end(isLoaded: Boolean): Unit = {
      reports.end()
      if (isLoaded) loaded()
      RecoveryProgress.this.synchronized(underWay -= this): Unit
    }

    private[RecoveryProgress] def bytesToDo: Long = synchronized(math.max(0, bytes - done))

    /** None are known before its snapshot is there. */
    private[RecoveryProgress] def changelogsToDo: Long = synchronized(if (at < 0) 0 else version - at)

    private def text: String = {
      val seconds = TimeUnit.NANOSECONDS.toSeconds(runtime.timer.nowNanos - startedNanos)
      val (there, of, current) = synchronized((done, bytes, at))
      val changelogs =
        if (current < 0) "then changelogs up to that version" else s"${version - current} changelogs are left"
      s"Version $version of $name is being loaded for $seconds s: $there of $of bytes of its snapshot are there, " +
        s"$changelogs. ${loading.size} stores are being loaded here, ${loaded.value} were."
    }
  }
}
