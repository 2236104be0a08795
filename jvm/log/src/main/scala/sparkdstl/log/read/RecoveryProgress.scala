package sparkdstl.log.read

import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.LongAdder

import scala.collection.mutable

import org.slf4j.LoggerFactory

import sparkdstl.log.runtime.{ProtocolRuntime, RepeatedReport}

/**
 * Which stores a process is loading, and how far each has come. Who waits for one that takes long finds it in the log,
 * every ten seconds. Thread-safe.
 */
final class RecoveryProgress(runtime: ProtocolRuntime) {
  import RecoveryProgress._

  // Guarded by this.
  private val underWay = mutable.LinkedHashSet.empty[LoadingStore]
  private val loaded = new LongAdder
  private val fetched = new LongAdder
  private val found = new LongAdder

  /**
   * A store is about to be loaded. Whoever says so says when that has ended, however it did.
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

  /** Stores that are being loaded now. */
  def storesLoading: Long = synchronized(underWay.size.toLong)

  /** Stores that were loaded. */
  def storesLoaded: Long = loaded.sum

  /** Bytes of snapshots' files that those which are being loaded still lack. */
  def snapshotBytesToDo: Long = all.map(_.bytesToDo).sum

  /** Bytes of snapshots' files that came from storage. */
  def snapshotBytesFetched: Long = fetched.sum

  /** Bytes of snapshots' files that were on the local disk still. */
  def snapshotBytesLocal: Long = found.sum

  /** Changelogs that those which are being loaded have not come to. */
  def changelogsToDo: Long = all.map(_.changelogsToDo).sum

  private def all: Vector[LoadingStore] = synchronized(underWay.toVector)

  /** One store, until it is loaded. */
  final class LoadingStore private[RecoveryProgress] (name: String, version: Long) {
    private val startedNanos = runtime.timer.nowNanos
    private[RecoveryProgress] val reports = new RepeatedReport(runtime.timer)(() => logger.info(text))

    // Guarded by this.
    private var bytes = 0L
    private var done = 0L
    private var at = -1L

    /** A snapshot is fetched now, whose files have so many bytes. What was fetched of another one does not count. */
    def fetching(length: Long): Unit = synchronized {
      bytes = length
      done = 0
    }

    /** So many bytes of it have come from storage. */
    def fetched(count: Long): Unit = {
      RecoveryProgress.this.fetched.add(count)
      synchronized(done += count)
    }

    /** So many bytes of it were on the local disk. */
    def foundLocally(count: Long): Unit = {
      found.add(count)
      synchronized(done += count)
    }

    /** It has this version now, from a snapshot or a changelog. */
    def reached(current: Long): Unit = synchronized { at = current }

    /** It is loaded, or could not be. */
    def end(isLoaded: Boolean): Unit = {
      reports.end()
      if (isLoaded) loaded.increment()
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
        s"$changelogs. $storesLoading stores are being loaded here, $storesLoaded were."
    }
  }
}

private object RecoveryProgress {
  private val logger = LoggerFactory.getLogger(classOf[RecoveryProgress])
}
