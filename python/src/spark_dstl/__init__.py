"""A durable short-term log for the state of Spark Structured Streaming queries.

`configure` makes a session keep its state in the log, `configure_session` one that is running already; `jar_path` says
where the jar is, for clusters that are configured elsewhere.
"""

from spark_dstl.errors import DstlError, InvalidOption, JarNotFound, UnknownOption, UnsupportedSpark
from spark_dstl.jar import jar_path
from spark_dstl.session import configure, configure_session
from spark_dstl.version import __version__

__all__ = [
    "DstlError",
    "InvalidOption",
    "JarNotFound",
    "UnknownOption",
    "UnsupportedSpark",
    "__version__",
    "configure",
    "configure_session",
    "jar_path",
]
