"""A durable short-term log for the state of Spark Structured Streaming queries.

`configure` makes a session keep its state in the log, `configure_session` one that is running already; `conf` returns
the settings for `spark-submit` and for clusters, and `jar_path` says where the jar is that these need.
"""

from spark_dstl.configuration import conf, configure, configure_session
from spark_dstl.errors import DstlError, InvalidOption, JarNotFound, JarNotLoaded, UnsupportedSpark
from spark_dstl.jar import jar_path
from spark_dstl.version import __version__

__all__ = [
    "DstlError",
    "InvalidOption",
    "JarNotFound",
    "JarNotLoaded",
    "UnsupportedSpark",
    "__version__",
    "conf",
    "configure",
    "configure_session",
    "jar_path",
]
