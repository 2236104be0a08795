package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID
import java.util.concurrent.TimeUnit

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.read.LogFileCache

import org.apache.spark.SparkEnv
import org.apache.spark.util.Utils

/**
 * The logs that this process's tasks use, one for each run and checkpoint, made on first use and closed when nobody has
 * used them for some time.
 */
private[dstl] object RunLogs {
  private val IdleNanos = TimeUnit.MINUTES.toNanos(15)
  private val SweepMillis = 10000L

  // All guarded by this. Making a log asks the driver or storage, so that is done outside of the lock.
  private val logs = mutable.HashMap.empty[(String, UUID), OnFirstUse[RunLog]]
  private var environment: SparkEnv = _
  private var sweeping = false

  def of(root: Path, run: UUID, configuration: Configuration, options: LogOptions): RunLog = {
    val env = SparkEnv.get
    val log = synchronized {
      if (environment ne env) {
        logs.valuesIterator.flatMap(_.ifMade).foreach(_.close())
        logs.clear()
        environment = env
      }
      startSweeping(options)
      logs.getOrElseUpdate((root.toString, run), new OnFirstUse(() => make(env, root, run, configuration, options)))
    }
    log.value
  }

  /** The logs of a run, on whichever checkpoint, that have been used. */
  def find(run: UUID): Seq[RunLog] = synchronized {
    logs.collect { case ((_, of), log) if of == run => log }.toSeq.flatMap(_.ifMade)
  }

  private def make(env: SparkEnv, root: Path, run: UUID, configuration: Configuration, options: LogOptions): RunLog = {
    val paths = QueryPathsFactory.of(root, configuration, options)
    val services = Services.of(options)
    val cache = new LogFileCache(
      paths.log,
      paths.base,
      options.cacheMaxSize,
      options.cacheIdleTimeoutMs,
      services.downloads,
      () => System.currentTimeMillis()
    )
    val executor = Option(env).fold("none")(_.executorId)
    new RunLog(
      paths,
      run,
      options,
      Option(env).flatMap(CoordinatorClient.connect(_, root.toString, run)),
      executor,
      cache,
      client =>
        new ExecutorUploads(
          paths,
          run,
          options,
          services,
          executor,
          env.conf.getAppId,
          Utils.localCanonicalHostName(),
          client,
          () => ExecutorEndpoint.ref(env)
        ),
      () => System.nanoTime()
    )
  }

  private def startSweeping(options: LogOptions): Unit =
    if (!sweeping) {
      sweeping = true
      scheduleSweep(Services.of(options))
    }

  private def scheduleSweep(services: Services): Unit =
    services.timer.schedule(SweepMillis) { () =>
      scheduleSweep(services)
      sweep()
    }: Unit

  private def sweep(): Unit = synchronized {
    val opened = logs.toSeq.flatMap { case (key, log) => log.ifMade.map(key -> _) }
    opened.foreach { case (key, log) =>
      log.evictIdle()
      if (log.idleNanos > IdleNanos && log.bytesInFlight == 0) {
        logs.remove(key)
        log.close()
      }
    }
  }
}
