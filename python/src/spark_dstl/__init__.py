# SPDX-License-Identifier: Apache-2.0
"""A durable short-term log for the state of Spark Structured Streaming queries.

`configure` sets up a session builder, and `configure_session` a running session. `conf` returns the settings for
`spark-submit` and for clusters, and `jar_path` the jar that they need. `metrics` returns the figures of the newest
batch of a query, and a `MetricsListener` keeps those of many batches. `open` reads a checkpoint without Spark; it needs
`pip install "spark-dstl[inspect]"`.
"""

from typing import TYPE_CHECKING, Any

from spark_dstl.checkpoint.checkpoint import Checkpoint, follow
from spark_dstl.checkpoint.checkpoint import open_checkpoint as open  # noqa: A004
from spark_dstl.checkpoint.following.changes import ChangedBatch, Position
from spark_dstl.checkpoint.following.copy import StateValue
from spark_dstl.checkpoint.following.follow import Followed
from spark_dstl.checkpoint.java.gateway import JvmOptions
from spark_dstl.checkpoint.java.state import Selection
from spark_dstl.checkpoint.locate import StorageOptions
from spark_dstl.configuration import conf, configure, configure_session
from spark_dstl.errors import (
    CannotConvert,
    CannotExport,
    CannotPin,
    CannotProbe,
    CannotRepartition,
    CannotRollBack,
    CheckpointNotFound,
    DamagedLog,
    DstlError,
    FellBehind,
    HistoryChanged,
    InvalidKey,
    InvalidOption,
    InvalidProgress,
    InvalidRequest,
    JarNotFound,
    JarNotLoaded,
    JvmFailed,
    MissingLogObject,
    MissingPackage,
    NotWatchable,
    PinTooLate,
    QuerySeemsToRun,
    ResultTooLarge,
    UnreadableState,
    UnreadableStorage,
    UnsupportedLog,
    UnsupportedSpark,
)
from spark_dstl.jar import jar_path
from spark_dstl.monitoring.query_metrics import QueryMetrics, metrics
from spark_dstl.version import __version__

if TYPE_CHECKING:
    from spark_dstl.monitoring.listener import MetricsListener

__all__ = [
    "CannotConvert", "CannotExport", "CannotPin", "CannotProbe", "CannotRepartition", "CannotRollBack", "ChangedBatch",
    "Checkpoint", "CheckpointNotFound", "DamagedLog", "DstlError", "FellBehind", "Followed", "HistoryChanged",
    "InvalidKey", "InvalidOption", "InvalidProgress", "InvalidRequest", "JarNotFound", "JarNotLoaded", "JvmFailed",
    "JvmOptions", "MetricsListener", "MissingLogObject", "MissingPackage", "NotWatchable", "PinTooLate", "Position",
    "QueryMetrics", "QuerySeemsToRun", "ResultTooLarge", "Selection", "StateValue", "StorageOptions", "UnreadableState",
    "UnreadableStorage", "UnsupportedLog", "UnsupportedSpark", "__version__", "conf", "configure", "configure_session",
    "follow", "jar_path", "metrics", "open",
]  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import subclasses of PySpark's classes at their first use."""
        if name == "MetricsListener":
            from spark_dstl.monitoring.listener import MetricsListener

            return MetricsListener
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
