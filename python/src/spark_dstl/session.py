"""Setting up Spark so that its stateful queries keep their state in the log: what `configuration` does."""

import os
import shlex
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from spark_dstl.errors import InvalidOption, JarNotLoaded
from spark_dstl.jar import jar_path
from spark_dstl.jvm import check_connect_server, check_jvm, running_jvm
from spark_dstl.monitoring.ui_charts import chart_settings
from spark_dstl.options import spark_settings
from spark_dstl.release import installed_line, line_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STATE = "org.apache.spark.sql.execution.streaming.state"


def configure_builder(
    builder: "SparkSession.Builder", transform_with_state: bool, **options: Any
) -> "SparkSession.Builder":
    """Do what `spark_dstl.configure` says."""
    line = installed_line()
    settings = _session_settings(transform_with_state, options)
    if not _uses_connect_server(builder):
        settings |= chart_settings(transform_with_state, _options_of(builder))
        jvm = running_jvm()
        if jvm is not None:
            check_jvm(jvm)
        else:
            settings["spark.jars"] = _with_jar(_options_of(builder).get("spark.jars", ""), str(jar_path(line.version)))
    for key, value in settings.items():
        builder.config(key, value)
    return builder


def configure_session(session: "SparkSession", transform_with_state: bool, **options: Any) -> "SparkSession":
    """Do what `spark_dstl.configure_session` says."""
    installed_line()
    settings = _session_settings(transform_with_state, options)
    line_of(session.version, "Spark", "is what this session runs on")
    # A session of Spark Connect has none.
    if hasattr(session, "sparkContext"):
        check_jvm(running_jvm())
    else:
        check_connect_server(session)
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def configure_settings(
    jar: str | os.PathLike[str] | bool, spark: str | None, transform_with_state: bool, **options: Any
) -> dict[str, str]:
    """Do what `spark_dstl.conf` says."""
    settings = _session_settings(transform_with_state, options) | chart_settings(transform_with_state, {})
    if jar is False:
        return settings
    place = str(jar_path(spark)) if jar is True else os.fspath(jar)
    if not place:
        raise InvalidOption("jar cannot be empty: it must be a path, a URI, True or False")
    return {"spark.jars": place, **settings}


def _session_settings(transform_with_state: bool, options: dict[str, Any]) -> dict[str, str]:
    """Return what a session needs to be told, all of which can be changed while it runs."""
    provider = "RocksDBStateStoreProvider" if transform_with_state else "dstl.DstlStateStoreProvider"
    return {
        "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.{provider}",
        "spark.sql.streaming.checkpointFileManagerClass": f"{_STATE}.dstl.DstlCheckpointFileManager",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        **spark_settings(options),
    }


def _options_of(builder: "SparkSession.Builder") -> dict[str, Any]:
    # Neither Spark's builder nor that of Spark Connect has a public way to ask what has been set.
    return dict(getattr(builder, "_options", {}))


def _uses_connect_server(builder: "SparkSession.Builder") -> bool:
    """Say whether the session's JVM is a Spark Connect server somewhere else, not one that this process starts."""
    remote = _options_of(builder).get("spark.remote") or os.environ.get("SPARK_REMOTE") or ""
    return str(remote).startswith("sc://") or getattr(builder, "_channel_builder", None) is not None


def _with_jar(jars: str, jar: str) -> str:
    """Return the list `jars` with `jar` in it, which Spark must not be about to overlook."""
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    preferred = [value for flag, value in pairwise(arguments) if flag == "--jars"]
    if preferred and Path(jar).name not in {PurePosixPath(entry).name for entry in preferred[-1].split(",")}:
        raise JarNotLoaded(
            "PYSPARK_SUBMIT_ARGS has --jars, for which Spark ignores the setting spark.jars, and the jar of spark-dstl "
            f"with it: add {jar} to that list, or set spark.jars on the builder instead"
        )
    present = [entry.strip() for entry in jars.split(",") if entry.strip()]
    return ",".join(present if jar in present else [*present, jar])
