"""Which Spark this release works with, and whether that is the one that is there."""

import os
import re
from pathlib import Path

from spark_dstl.errors import UnsupportedSpark

SUPPORTED_SPARK = "4.2"
INSTALL = f'pip install "pyspark>={SUPPORTED_SPARK}.0,<4.3"'
_CORE = re.compile(r"spark-core_(?P<scala>[0-9.]+)-(?P<spark>.+)\.jar")


def check_installed_spark() -> None:
    """Raise `UnsupportedSpark` unless PySpark is there, and fits, and so does the Spark that it would start."""
    try:
        import pyspark
    except ModuleNotFoundError:
        raise UnsupportedSpark(
            f"PySpark is not installed; this release of spark-dstl works with {SUPPORTED_SPARK}.x: {INSTALL}"
        ) from None
    check_spark_version(pyspark.__version__, "PySpark", f"is installed; {INSTALL}")
    home = os.environ.get("SPARK_HOME")
    for jar in Path(home, "jars").glob("spark-core_*.jar") if home else ():
        match = _CORE.fullmatch(jar.name)
        if match is None:
            continue
        way_out = f"is what SPARK_HOME={home} names; name another, or unset it to use the Spark of PySpark"
        check_spark_version(match["spark"], "Spark", way_out)
        if match["scala"] != "2.13":
            raise UnsupportedSpark(f"this release of spark-dstl works with Scala 2.13; {match['scala']} {way_out}")


def check_spark_version(version: str, what: str, where: str) -> None:
    """Raise `UnsupportedSpark` unless `version` is one of the supported minor release."""
    if not version.startswith(f"{SUPPORTED_SPARK}."):
        raise UnsupportedSpark(
            f"this release of spark-dstl works with Spark {SUPPORTED_SPARK}.x; {what} {version} {where}"
        )
