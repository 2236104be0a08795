# SPDX-License-Identifier: Apache-2.0
"""`configure`, `configure_session` and `conf`: the Spark settings that keep the state of queries in the log."""

from __future__ import annotations

import os
import re
import shlex
import warnings
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from spark_dstl.errors import InvalidOption, JarNotLoaded
from spark_dstl.jar import jar_path
from spark_dstl.jvm import check_connect_server, check_jvm, running_jvm
from spark_dstl.monitoring.ui_charts import SETTING, chart_settings
from spark_dstl.options import Directory, Duration, Size, spark_settings
from spark_dstl.release import installed_line, line_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typing_extensions import Unpack

_STATE = "org.apache.spark.sql.execution.streaming.state"


class LogOptions(TypedDict, total=False):
    """The options of the log as keywords; None sets nothing. A test compares them with `options.json`."""

    enabled: bool | None
    storage: Literal["filesystem", "memory"] | None
    storage_publish: Literal["auto", "direct", "rename"] | None
    storage_require_exclusive_create: bool | None
    base_path: Directory | None
    commit_mode: Literal["async", "sync"] | None
    commit_timeout: Duration | None
    commit_overlap_offsets: Literal["auto", "always", "never"] | None
    inline_max_segment_size: Size | None
    inline_max_batch_size: Size | None
    preemptive_persist_threshold: Size | None
    batch_persist_size_threshold: Size | None
    batch_persist_delay: Duration | None
    materialize_interval: Duration | None
    materialize_replay_cost: int | None
    materialize_max_failures: int | None
    materialize_on_failure: Literal["log", "fail"] | None
    materialize_num_threads: int | None
    upload_num_threads: int | None
    upload_max_in_flight: Size | None
    upload_retry_policy: Literal["none", "fixed", "hedged"] | None
    upload_timeout: Duration | None
    upload_max_attempts: int | None
    upload_next_attempt_delay: Duration | None
    download_num_threads: int | None
    download_cache_max_size: Size | None
    download_cache_idle_timeout: Duration | None
    download_disk_cache_max_size: Size | None
    local_recovery_max_size: Size | None
    pins_max_duration: Duration | None
    simulate_slow_storage: Duration | None


def configure(
    builder: SparkSession.Builder, *, transform_with_state: bool = False, **options: Unpack[LogOptions]
) -> SparkSession.Builder:
    """Make the sessions of `builder` keep the state of streaming queries in the log, and return `builder`.

    ```python
    spark = spark_dstl.configure(SparkSession.builder.appName("orders"), commit_timeout="5min").getOrCreate()
    ```

    Call it before Spark starts: it adds the jar to `spark.jars`, which Spark reads when it starts its JVM. A JVM that
    already runs (in a notebook, under `spark-submit`) must have been started with the jar; `spark.jars` then does not
    change. A Spark Connect server (`sc://`) is not checked; `configure_session` checks it.

    Spark's UI shows charts of the log on the page of each query, after those that
    `spark.sql.streaming.ui.enabledCustomMetricList` of the builder names. The builder's lists of jars and charts
    replace those in `spark-defaults.conf`: name these on the builder as well.

    `transform_with_state` is required for queries with `transformWithState` or `transformWithStateInPandas`. Spark
    accepts only its own provider for them; the settings name that provider, and the log works below it. All other
    stateful operators work too, without the metrics `dstl...` in the query's progress.

    `options` are the options of the log: `commit_timeout` is the option `commit.timeout` of docs/configuration.md, and
    `dstl config --help` describes each. An omitted option, or None, leaves the value to Spark's configuration or the
    default.

    Raises `InvalidOption` for an invalid value; `UnsupportedSpark` if Spark is missing or this release does not support
    it; `JarNotLoaded` if a JVM runs without the jar; `JarNotFound`; `TypeError` for a session in place of a builder.
    After an error `builder` is unchanged.
    """
    if not hasattr(builder, "getOrCreate"):
        raise TypeError(
            f"configure takes SparkSession.builder, not a {type(builder).__name__}: for a session that runs, call "
            "configure_session"
        )
    line = installed_line()
    settings = _session_settings(transform_with_state, options)
    if not _uses_connect_server(builder):
        settings |= chart_settings(transform_with_state, _options_of(builder))
        jvm = running_jvm()
        if jvm is not None:
            check_jvm(jvm)
        else:
            settings["spark.jars"] = _with_jar(_options_of(builder).get("spark.jars", ""), str(jar_path(line.version)))
            # PySpark sets them again where it has started a Spark Connect server with them, which warns of that.
            for key in ("spark.jars", SETTING):
                warnings.filterwarnings("ignore", rf"Failed to set {re.escape(key)} to ", UserWarning)
    for key, value in settings.items():
        builder.config(key, value)
    return builder


def configure_session(
    session: SparkSession, *, transform_with_state: bool = False, **options: Unpack[LogOptions]
) -> SparkSession:
    """Make the queries that `session` starts from now on keep state in the log, and return `session`.

    For a session that exists already, such as one of Spark Connect; other sessions do not change. Spark must have been
    started with the jar, with `--jars` or `spark.jars`. `transform_with_state` and `options` are those of `configure`.
    Spark reads the list of charts of its UI when it starts; `conf` returns that setting.

    ```python
    session = spark_dstl.configure_session(spark.newSession(), materialize_interval="5min")
    ```

    Raises `InvalidOption`, `UnsupportedSpark`, or `JarNotLoaded` if Spark runs without the jar. After an error
    `session` is unchanged.
    """
    installed_line()
    settings = _session_settings(transform_with_state, options)
    line_of(session.version, "Spark", "is what this session runs on")
    # A session of Spark Connect has no `sparkContext`.
    if hasattr(session, "sparkContext"):
        check_jvm(running_jvm())
    else:
        check_connect_server(session)
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def conf(
    *,
    jar: str | os.PathLike[str] | bool = True,
    spark: str | None = None,
    transform_with_state: bool = False,
    **options: Unpack[LogOptions],
) -> dict[str, str]:
    """Return the Spark settings that keep state in the log, for `spark-submit --conf` and the settings of a cluster.

    Of these, the jar and the list of charts of Spark's UI must be set when Spark starts.

    `jar` is the jar for Spark, a path or a URI that each of its machines can read; by default the jar of this package
    on this machine. With False `spark.jars` is left out, for a cluster that has the jar from elsewhere. `spark` is the
    version of Spark whose jar this package returns, such as `4.2`; by default that of the installed PySpark.
    `transform_with_state` and `options` are those of `configure`. With `jar` or `spark`, Spark need not be installed.

    ```python
    for key, value in spark_dstl.conf(jar="/opt/spark-dstl-spark4.2_2.13-0.1.0.jar", commit_timeout="5min").items():
        print(f"{key}={value}")
    ```

    Raises `InvalidOption`, `JarNotFound`, or `UnsupportedSpark` if the package has no jar for that Spark, or none is
    named and PySpark is not installed.
    """
    settings = _session_settings(transform_with_state, options) | chart_settings(transform_with_state, {})
    if jar is False:
        return settings
    place = str(jar_path(spark)) if jar is True else os.fspath(jar)
    if not place:
        raise InvalidOption("jar cannot be empty: it must be a path, a URI, True or False")
    return {"spark.jars": place, **settings}


def _session_settings(transform_with_state: bool, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that can be changed in a running session."""
    provider = "RocksDBStateStoreProvider" if transform_with_state else "dstl.DstlStateStoreProvider"
    return {
        "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.{provider}",
        "spark.sql.streaming.checkpointFileManagerClass": f"{_STATE}.dstl.DstlCheckpointFileManager",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        **spark_settings(options),
    }


def _options_of(builder: SparkSession.Builder) -> dict[str, Any]:
    # The builders of Spark and of Spark Connect have no public way to read settings.
    return dict(getattr(builder, "_options", {}))


def _uses_connect_server(builder: SparkSession.Builder) -> bool:
    """Whether the session's JVM is a Spark Connect server that this process does not start."""
    remote = _options_of(builder).get("spark.remote") or os.environ.get("SPARK_REMOTE") or ""
    return str(remote).startswith("sc://") or getattr(builder, "_channel_builder", None) is not None


def _with_jar(jars: str, jar: str) -> str:
    """Return the list `jars` with `jar` in it. Raises `JarNotLoaded` if Spark would ignore the list."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    # Spark takes `--jars LIST` and `--jars=LIST`, and of several the last; `--conf spark.jars=LIST` only without these.
    arguments = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    preferred = [value for flag, value in pairwise(arguments) if flag == "--jars"] or [
        value.removeprefix("spark.jars=")
        for flag, value in pairwise(arguments)
        if flag in ("--conf", "-c") and value.startswith("spark.jars=")
    ]
    if preferred and Path(jar).name not in {PurePosixPath(entry).name for entry in preferred[-1].split(",")}:
        raise JarNotLoaded(
            "PYSPARK_SUBMIT_ARGS has --jars or --conf spark.jars, for which Spark ignores the jars that are set here, "
            f"and the jar of spark-dstl with them: add {jar} to that list, or set spark.jars on the builder instead"
        )
    present = [entry.strip() for entry in jars.split(",") if entry.strip()]
    return ",".join(present if jar in present else [*present, jar])
