"""A durable short-term log for the state of Spark Structured Streaming queries.

`configure` makes a session keep its state in the log, `configure_session` one that is running already; `conf` returns
the settings for `spark-submit` and for clusters, and `jar_path` says where the jar is that these need. `open` reads a
checkpoint, without Spark; it needs `pip install "spark-dstl[inspect]"`.
"""

from spark_dstl.checkpoint.checkpoint import Checkpoint
from spark_dstl.checkpoint.checkpoint import open_checkpoint as open  # noqa: A004
from spark_dstl.checkpoint.locate import StorageOptions
from spark_dstl.configuration import conf, configure, configure_session
from spark_dstl.errors import (
    CannotGoBack,
    CheckpointNotFound,
    DamagedLog,
    DstlError,
    InvalidOption,
    JarNotFound,
    JarNotLoaded,
    MissingDependency,
    MissingLogObject,
    QuerySeemsToRun,
    UnreadableStorage,
    UnsupportedLog,
    UnsupportedSpark,
)
from spark_dstl.jar import jar_path
from spark_dstl.version import __version__

__all__ = [
    "CannotGoBack",
    "Checkpoint",
    "CheckpointNotFound",
    "DamagedLog",
    "DstlError",
    "InvalidOption",
    "JarNotFound",
    "JarNotLoaded",
    "MissingDependency",
    "MissingLogObject",
    "QuerySeemsToRun",
    "StorageOptions",
    "UnreadableStorage",
    "UnsupportedLog",
    "UnsupportedSpark",
    "__version__",
    "conf",
    "configure",
    "configure_session",
    "jar_path",
    "open",
]
