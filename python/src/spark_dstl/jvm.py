# SPDX-License-Identifier: Apache-2.0
"""Checks that the running Spark has the jar."""

import os
from typing import TYPE_CHECKING, Any

from spark_dstl.errors import JarNotFound, JarNotLoaded
from spark_dstl.jar import jar_path
from spark_dstl.release import installed_line
from spark_dstl.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "org.apache.spark.sql.execution.streaming.state.dstl"
_NOT_FOUND = "DATATYPE_MISMATCH.UNEXPECTED_CLASS_TYPE"


def running_jvm() -> Any:
    """Return py4j's view of the JVM of this process's Spark, or None if none is running."""
    from pyspark import util

    # Since 4.0 there is a PySpark without a JVM.
    if hasattr(util, "is_remote_only") and util.is_remote_only():
        return None
    from pyspark import SparkContext

    if _under_spark_submit():
        # The JVM runs before Python. A call connects to it; before 4.0 there is no such call.
        if hasattr(SparkContext, "getSystemProperty"):
            SparkContext.getSystemProperty("java.version")
        else:
            SparkContext._ensure_initialized()
    # A session is the public way to the JVM, but a JVM may run without one: before the first, and after `stop`.
    return SparkContext._jvm


def check_jvm(jvm: Any) -> None:
    """Raise `JarNotLoaded` unless the classes that `jvm` sees are those of this release's jar."""
    from py4j.java_gateway import JavaPackage

    release = getattr(jvm, f"{_PACKAGE}.DstlRelease")
    # py4j returns a package for the name of a class that does not exist.
    found = None if isinstance(release, JavaPackage) else release.version()
    if found == __version__:
        # It may be the jar for another Spark.
        mismatch = release.mismatch()
        if mismatch is None:
            return
        raise JarNotLoaded(f"{mismatch} {_way_out()}")
    problem = "without the jar" if found is None else f"with the jar of release {found}, not {__version__},"
    raise JarNotLoaded(f"Spark is running already, and was started {problem} of spark-dstl. {_way_out()}")


def check_connect_server(session: "SparkSession") -> None:
    """Raise `JarNotLoaded` unless the server of this Spark Connect session has the jar, of any release."""
    from pyspark.errors import AnalysisException

    try:
        _ = session.sql(f"SELECT java_method('{_PACKAGE}.DstlRelease', 'version')").schema
    except AnalysisException as error:
        # `getErrorClass` is the name before 4.0.
        condition = error.getCondition() if hasattr(error, "getCondition") else error.getErrorClass()
        if condition != _NOT_FOUND:
            raise
        raise JarNotLoaded(
            "the Spark Connect server was started without the jar of spark-dstl. Start it with the jar, "
            f"`start-connect-server.sh --jars {_place()}`; an artifact that a session adds comes too late"
        ) from None


def _way_out() -> str:
    if _under_spark_submit():
        return f"Start it with the jar: `spark-submit --jars {_place()}`"
    return (
        "Restart the Python process (in a notebook, the kernel), and call spark_dstl.configure before anything starts "
        f"Spark; or start Spark with the jar: `--jars {_place()}`"
    )


def _under_spark_submit() -> bool:
    """Whether `spark-submit`, `pyspark` or a notebook's kernel started the JVM and then this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _place() -> str:
    try:
        return str(jar_path())
    except JarNotFound:
        return installed_line().jar
