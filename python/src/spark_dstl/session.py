"""Setting up a Spark session so that its stateful queries keep their state in the log."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spark_dstl.errors import InvalidOption, UnsupportedSpark
from spark_dstl.jar import jar_path
from spark_dstl.options import spark_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPORTED_SPARK = "4.2"
_STATE = "org.apache.spark.sql.execution.streaming.state"
_PROVIDERS = {
    "dstl": f"{_STATE}.dstl.DstlStateStoreProvider",
    "stock": f"{_STATE}.RocksDBStateStoreProvider",
}


def configure(builder: "SparkSession.Builder", *, provider: str = "dstl", **options: Any) -> "SparkSession.Builder":
    """Make the sessions of `builder` keep the state of their streaming queries in the log, and return `builder`.

    ```python
    spark = configure(SparkSession.builder.appName("orders"), commit_timeout="5min").getOrCreate()
    ```

    With `provider="stock"` queries name Spark's own RocksDB provider, with the log below it. `transformWithState` and
    `transformWithStateInPandas` need that, because Spark refuses them any other provider. It works for all other
    stateful operators too; what is missing is the metrics `dstl...` in the query's progress.

    Options are the keys of the reference in snake case, `upload_max_in_flight="100m"` for `upload.maxInFlight`, or
    the keys themselves, `**{"upload.maxInFlight": "100m"}`. Values are in Spark's notation, or `int`, `bool`, `float`,
    `timedelta` and paths where they fit. Raises `UnknownOption`, `InvalidOption`, `UnsupportedSpark` or `JarNotFound`,
    and then leaves `builder` as it was.

    The jar is added to `spark.jars`, which Spark reads when it starts its JVM: call this before the first session. The
    server of a Spark Connect session (`sc://`) is running already and must have been started with the jar.
    """
    _check_spark()
    settings = _settings(provider, options)
    if not _uses_running_server(builder):
        settings["spark.jars"] = _with_jar(_options_of(builder).get("spark.jars", ""), str(jar_path()))
    for key, value in settings.items():
        builder.config(key, value)
    return builder


def configure_session(session: "SparkSession", *, provider: str = "dstl", **options: Any) -> "SparkSession":
    """Make the queries that `session` starts from now on keep their state in the log, and return `session`.

    For a session that exists already, such as one of Spark Connect; others are not affected. `provider` and options
    are those of `configure`. The jar must have been given to Spark when it started, with `--jars` or `spark.jars`:
    without it, a query fails at its start with a class that was not found. Raises `UnknownOption`, `InvalidOption` or
    `UnsupportedSpark`, and then leaves `session` as it was.
    """
    _check_spark()
    for key, value in _settings(provider, options).items():
        session.conf.set(key, value)
    return session


def _settings(provider: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return what a session needs to be told, all of which can be changed while it runs."""
    if provider not in _PROVIDERS:
        raise InvalidOption(f"provider cannot be {provider!r}: it must be one of {', '.join(_PROVIDERS)}")
    return {
        "spark.sql.streaming.stateStore.providerClass": _PROVIDERS[provider],
        "spark.sql.streaming.checkpointFileManagerClass": f"{_STATE}.dstl.DstlCheckpointFileManager",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        **spark_settings(options),
    }


def _check_spark() -> None:
    install = f'pip install "pyspark>={SUPPORTED_SPARK}.0,<4.3"'
    try:
        import pyspark
    except ModuleNotFoundError:
        raise UnsupportedSpark(
            f"PySpark is not installed; this release works with {SUPPORTED_SPARK}.x: {install}"
        ) from None
    if not pyspark.__version__.startswith(f"{SUPPORTED_SPARK}."):
        raise UnsupportedSpark(
            f"PySpark {pyspark.__version__} is installed; this release works with {SUPPORTED_SPARK}.x: {install}"
        )


def _options_of(builder: "SparkSession.Builder") -> dict[str, Any]:
    # Neither Spark's builder nor that of Spark Connect has a public way to ask what has been set.
    return dict(getattr(builder, "_options", {}))


def _uses_running_server(builder: "SparkSession.Builder") -> bool:
    """Say whether the session's JVM is a Spark Connect server somewhere else, not one that this process starts."""
    remote = _options_of(builder).get("spark.remote") or os.environ.get("SPARK_REMOTE") or ""
    return str(remote).startswith("sc://") or getattr(builder, "_channel_builder", None) is not None


def _with_jar(jars: str, jar: str) -> str:
    present = [entry.strip() for entry in jars.split(",") if entry.strip()]
    return ",".join(present if jar in present else [*present, jar])
