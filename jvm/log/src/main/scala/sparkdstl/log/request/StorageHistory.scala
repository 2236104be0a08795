package sparkdstl.log.request

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.Path

/**
 * What is known of one storage: the latencies of recent attempts, and how many may still begin early. Shared by all requests
 * to it, and by none to another: a slow bucket takes no hedges from a healthy one.
 */
final class StorageHistory {
  private[request] val latencies = new AttemptLatencies
  private[request] val hedges = new HedgeBudget
}

/** The histories of all storages of a process. Thread-safe. */
final class StorageHistories {
  private val histories = new ConcurrentHashMap[String, StorageHistory]

  /** The history of the storage that holds `path`. */
  def of(path: Path): StorageHistory =
    histories.computeIfAbsent(s"${path.toUri.getScheme}://${path.toUri.getAuthority}", _ => new StorageHistory)
}
