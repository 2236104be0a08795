"""What a user configures with: every option of the log is a keyword.

Generated from LogOptions.scala by `make docs`; the texts of the functions are in project/generate_keywords.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from spark_dstl import session as _session
from spark_dstl.options import Directory, Duration, Size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def configure(
    builder: SparkSession.Builder,
    *,
    transform_with_state: bool = False,
    enabled: bool | None = None,
    storage: Literal["filesystem", "memory"] | None = None,
    storage_publish: Literal["auto", "direct", "rename"] | None = None,
    storage_require_exclusive_create: bool | None = None,
    base_path: Directory | None = None,
    commit_mode: Literal["async", "sync"] | None = None,
    commit_timeout: Duration | None = None,
    inline_max_segment_size: Size | None = None,
    inline_max_batch_size: Size | None = None,
    preemptive_persist_threshold: Size | None = None,
    batch_persist_size_threshold: Size | None = None,
    batch_persist_delay: Duration | None = None,
    materialize_interval: Duration | None = None,
    materialize_replay_cost: int | None = None,
    materialize_max_failures: int | None = None,
    materialize_on_failure: Literal["log", "fail"] | None = None,
    materialize_num_threads: int | None = None,
    upload_num_threads: int | None = None,
    upload_max_in_flight: Size | None = None,
    upload_retry_policy: Literal["none", "fixed", "hedged"] | None = None,
    upload_timeout: Duration | None = None,
    upload_max_attempts: int | None = None,
    upload_next_attempt_delay: Duration | None = None,
    download_num_threads: int | None = None,
    download_cache_max_size: Size | None = None,
    download_cache_idle_timeout: Duration | None = None,
    download_disk_cache_max_size: Size | None = None,
    local_recovery_max_size: Size | None = None,
) -> SparkSession.Builder:
    """Make the sessions of `builder` keep the state of streaming queries in the log, and return `builder`.

    ```python
    spark = spark_dstl.configure(SparkSession.builder.appName("orders"), commit_timeout="5min").getOrCreate()
    ```

    Call it before anything starts Spark: the jar is added to `spark.jars`, which Spark reads when it starts its JVM.
    Where a JVM runs already (in a notebook, under `spark-submit`), it must have been started with the jar, and
    `spark.jars` stays as it is. A Spark Connect server (`sc://`) runs somewhere else, and is not asked:
    `configure_session` does.

    Spark's UI is asked to draw charts of the log on the page of each query, beside those that
    `spark.sql.streaming.ui.enabledCustomMetricList` of the builder names.

    A list of jars or charts in `spark-defaults.conf` gives way to that of the builder, so name these on the builder as
    well.

    Raises `InvalidOption` for a value that its option cannot take; `UnsupportedSpark` if Spark is missing or not one
    that this release works with; `JarNotLoaded` if a JVM runs without the jar; `JarNotFound`. `builder` is then as
    it was.

    `transform_with_state` is for queries with `transformWithState` or `transformWithStateInPandas`,
    for which Spark accepts no provider but its own: they name that, and have the log below it. It works for all
    other stateful operators too; what is missing is the metrics `dstl...` in the query's progress.

    An option that is not given, or is None, is not set; Spark's configuration or the default then decides:

    - `enabled`: Whether state changes are written to the log. When false, changelogs are written as plain files in
      Spark's own layout, as Spark would write them; what is in the log already stays readable. A query can be switched
      either way between two runs. True or false; by default true.
    - `storage`: Where the log is kept: `filesystem` is the file system of `base_path`; `memory` is the driver's
      memory, for tests in `local` mode, and is lost with the process. One of filesystem, memory; by default
      filesystem.
    - `storage_publish`: How an object is made visible as a whole: `direct` writes it under its name, right where an
      object appears only when its stream is closed (S3, GCS); `rename` writes a temporary file and renames it (HDFS,
      ABFS, local disks). `auto` asks the file system. One of auto, direct, rename; by default auto.
    - `storage_require_exclusive_create`: Whether a query refuses to start where storage cannot create an object
      exclusively. Without that, two drivers on one checkpoint may both commit a batch; when false, the query warns at
      its start and reads again around each commit. True or false; by default false.
    - `base_path`: Directory of the log. One query's log must not lie in another's. It may be on another file system
      than the checkpoint. Once a query has written to its log, changing this makes it unreadable until it is set back
      or the log's files are moved along. An absolute path, or a URI such as s3a://bucket/directory; by default
      `<checkpoint>/dstl`.
    - `commit_mode`: `async`: a task only hands its changes over, and one barrier before the commit entry makes a
      batch's changes durable. `sync`: each task writes its own changelog file in Spark's layout and waits for it, with
      the timeouts and retries configured here; the log is not used for new batches. One of async, sync; by default
      async.
    - `commit_timeout`: How long the barrier waits for a batch's changes to be durable, and any single request for an
      answer, before the batch fails. Errors are retried until then, and a storage that stalls for less only makes the
      batch wait. A duration such as 500ms, 10s or 5min, or a number of milliseconds, at least 1s, at most 24h; by
      default 10min.
    - `inline_max_segment_size`: Segments up to this size travel to the driver with the task's seal and are stored in
      the commit entry itself; larger ones are uploaded by their executor. 0 uploads everything. A size such as 512k,
      100m or 1g, or a number of bytes, at least 0, at most 16m; by default 128k.
    - `inline_max_batch_size`: How many bytes of small segments the driver holds for one batch of one query. What comes
      beyond is uploaded by the executors. A size such as 512k, 100m or 1g, or a number of bytes, at least 0, at most
      512m; by default 16m.
    - `preemptive_persist_threshold`: As soon as a store has this many bytes of unsealed changes they go to the
      uploader, while the task still runs. No part of a segment is larger, so this is also what is read and checked at
      once on recovery. A size such as 512k, 100m or 1g, or a number of bytes, at least 64k, at most 512m; by default
      5m.
    - `batch_persist_size_threshold`: An executor groups segments into one file and uploads it when the group has this
      size, or when the driver asks at the end of the batch. A size such as 512k, 100m or 1g, or a number of bytes, at
      least 64k, at most 1g; by default 10m.
    - `batch_persist_delay`: How long a segment waits on its executor for others to be grouped with before it is
      uploaded all the same. This is what may be lost with an executor while tasks still run. A duration such as 500ms,
      10s or 5min, or a number of milliseconds, at least 10ms, at most 1h; by default 1s.
    - `materialize_interval`: After how long a store that has changed is snapshotted, in the background, so that its
      log can be deleted. Stores begin at different times. A duration such as 500ms, 10s or 5min, or a number of
      milliseconds, at least 1s, at most 24h; by default 10min.
    - `materialize_replay_cost`: How many bytes of a snapshot are loaded in the time in which one byte of the log is
      replayed. A store whose log would take longer to replay than its snapshot takes to load is snapshotted before its
      interval is over, but not before `spark.sql.streaming.stateStore.minDeltasForSnapshot` versions. 0 leaves it at
      the interval. A whole number, at least 0, at most 100000; by default 50.
    - `materialize_max_failures`: How many times in a row the snapshot of a store is tried before that is called a
      failure. The log is kept meanwhile. A whole number, at least 1, at most 1000; by default 3.
    - `materialize_on_failure`: What comes of such a failure: `log` writes a warning, and tries again with the next
      version; `fail` fails the query. One of log, fail; by default log.
    - `materialize_num_threads`: How many stores' snapshots a process uploads at once, for all queries together: the
      largest that any of them asks for. A whole number, at least 1, at most 64; by default 2.
    - `upload_num_threads`: How many requests a process makes at once to the storage of its logs, for all queries
      together: the largest that any of them asks for. Hedges have threads of their own, up to `upload_max_attempts`
      times as many in all; more are in use only while connections hang. A whole number, at least 1, at most 256; by
      default 5.
    - `upload_max_in_flight`: How many bytes may wait for upload in a process, for all queries together: the largest
      that any of them asks for. A task that would go beyond waits. A size such as 512k, 100m or 1g, or a number of
      bytes, at least 1m, at most 64g; by default 100m.
    - `upload_retry_policy`: For every request to storage. `none`: one attempt, however long it takes. `fixed`: another
      attempt after an error, and beside one without an answer after `upload_timeout`. `hedged`: another also as soon
      as the newest is slower than 95 % of the recent ones of its kind were, for at most one request in ten. The first
      attempt to succeed counts. One of none, fixed, hedged; by default hedged.
    - `upload_timeout`: After how long without an answer another attempt starts beside the newest; for `hedged` the
      upper bound. A duration such as 500ms, 10s or 5min, or a number of milliseconds, at least 1ms, at most 1h; by
      default 1s.
    - `upload_max_attempts`: How many attempts of one request are waited for at once. If none of them answers, the
      oldest is aborted and another begins, at intervals that double up to 10 s, until `commit_timeout`. Attempts after
      errors are not limited in number. A whole number, at least 1, at most 20; by default 3.
    - `upload_next_attempt_delay`: How long to wait after an attempt that failed, give or take up to half of it at
      random. Doubles with each further error, to at most 10 s. A duration such as 500ms, 10s or 5min, or a number of
      milliseconds, at least 0ms, at most 1h; by default 500ms.
    - `download_num_threads`: How many log files an executor fetches at once on recovery, and how many ranges, of 4
      MiB, of a store's snapshot. A whole number, at least 1, at most 256; by default 8.
    - `download_cache_max_size`: How many bytes of commit entries and of data files in which several stores have
      something an executor keeps in memory on recovery, so that each is fetched once for all its stores. A size such
      as 512k, 100m or 1g, or a number of bytes, at least 1m, at most 64g; by default 64m.
    - `download_cache_idle_timeout`: How long entries that are not read stay in that memory. A duration such as 500ms,
      10s or 5min, or a number of milliseconds, at least 1s, at most 24h; by default 1min.
    - `download_disk_cache_max_size`: How many bytes of the same an executor keeps on its local disk on recovery,
      beside those in memory, for the stores that come to them later. 0 keeps none. A size such as 512k, 100m or 1g, or
      a number of bytes, at least 0, at most 1024g; by default 1g.
    - `local_recovery_max_size`: How many bytes of snapshots' files an executor keeps on its local disk for stores that
      come back to it, after a query was started again or a store was elsewhere: only what they lack is fetched then.
      While a store is open they take no room of their own. 0 keeps none. A size such as 512k, 100m or 1g, or a number
      of bytes, at least 0, at most 1024g; by default 4g.
    """
    return _session.configure_builder(**locals())


def configure_session(
    session: SparkSession,
    *,
    transform_with_state: bool = False,
    enabled: bool | None = None,
    storage: Literal["filesystem", "memory"] | None = None,
    storage_publish: Literal["auto", "direct", "rename"] | None = None,
    storage_require_exclusive_create: bool | None = None,
    base_path: Directory | None = None,
    commit_mode: Literal["async", "sync"] | None = None,
    commit_timeout: Duration | None = None,
    inline_max_segment_size: Size | None = None,
    inline_max_batch_size: Size | None = None,
    preemptive_persist_threshold: Size | None = None,
    batch_persist_size_threshold: Size | None = None,
    batch_persist_delay: Duration | None = None,
    materialize_interval: Duration | None = None,
    materialize_replay_cost: int | None = None,
    materialize_max_failures: int | None = None,
    materialize_on_failure: Literal["log", "fail"] | None = None,
    materialize_num_threads: int | None = None,
    upload_num_threads: int | None = None,
    upload_max_in_flight: Size | None = None,
    upload_retry_policy: Literal["none", "fixed", "hedged"] | None = None,
    upload_timeout: Duration | None = None,
    upload_max_attempts: int | None = None,
    upload_next_attempt_delay: Duration | None = None,
    download_num_threads: int | None = None,
    download_cache_max_size: Size | None = None,
    download_cache_idle_timeout: Duration | None = None,
    download_disk_cache_max_size: Size | None = None,
    local_recovery_max_size: Size | None = None,
) -> SparkSession:
    """Make the queries that `session` starts from now on keep state in the log, and return `session`.

    For a session that exists already, such as one of Spark Connect; other sessions are not affected. Spark must have
    been started with the jar, with `--jars` or `spark.jars`. The keywords, with `transform_with_state`, are those of
    `configure`. Which charts its UI has Spark reads when it starts, from what `conf` returns.

    ```python
    session = spark_dstl.configure_session(spark.newSession(), materialize_interval="5min")
    ```

    Raises `InvalidOption`, `UnsupportedSpark`, or `JarNotLoaded` if Spark runs without the jar. `session` is then as
    it was.
    """
    return _session.configure_session(**locals())


def conf(
    *,
    jar: str | os.PathLike[str] | bool = True,
    spark: str | None = None,
    transform_with_state: bool = False,
    enabled: bool | None = None,
    storage: Literal["filesystem", "memory"] | None = None,
    storage_publish: Literal["auto", "direct", "rename"] | None = None,
    storage_require_exclusive_create: bool | None = None,
    base_path: Directory | None = None,
    commit_mode: Literal["async", "sync"] | None = None,
    commit_timeout: Duration | None = None,
    inline_max_segment_size: Size | None = None,
    inline_max_batch_size: Size | None = None,
    preemptive_persist_threshold: Size | None = None,
    batch_persist_size_threshold: Size | None = None,
    batch_persist_delay: Duration | None = None,
    materialize_interval: Duration | None = None,
    materialize_replay_cost: int | None = None,
    materialize_max_failures: int | None = None,
    materialize_on_failure: Literal["log", "fail"] | None = None,
    materialize_num_threads: int | None = None,
    upload_num_threads: int | None = None,
    upload_max_in_flight: Size | None = None,
    upload_retry_policy: Literal["none", "fixed", "hedged"] | None = None,
    upload_timeout: Duration | None = None,
    upload_max_attempts: int | None = None,
    upload_next_attempt_delay: Duration | None = None,
    download_num_threads: int | None = None,
    download_cache_max_size: Size | None = None,
    download_cache_idle_timeout: Duration | None = None,
    download_disk_cache_max_size: Size | None = None,
    local_recovery_max_size: Size | None = None,
) -> dict[str, str]:
    """Return the Spark settings that keep state in the log, for `spark-submit --conf` and the settings of a cluster.

    They are to be given when Spark starts; among them is the list of charts that Spark's UI is to draw.

    `jar` is where Spark finds the jar, a path or a URI that each of its machines can read: by default that of this
    package, on this machine; with False there is no `spark.jars`, for a cluster that has the jar from elsewhere.
    `spark` is the version of the Spark that the jar of this package is to be for, such as `4.2`; by default that of the
    installed PySpark. The other keywords, with `transform_with_state`, are those of `configure`. Nothing else is asked
    of Spark, which need not be installed.

    ```python
    for key, value in spark_dstl.conf(jar="/opt/spark-dstl-spark4.2_2.13-0.1.0.jar", commit_timeout="5min").items():
        print(f"{key}={value}")
    ```

    Raises `InvalidOption`, `JarNotFound`, or `UnsupportedSpark` if the package has no jar for that Spark.
    """
    return _session.configure_settings(**locals())
