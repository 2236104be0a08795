# SPDX-License-Identifier: Apache-2.0
"""The releases of Spark that this release supports, and the installed one."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from spark_dstl.errors import UnsupportedSpark
from spark_dstl.version import __version__


@dataclass(frozen=True)
class SparkLine:
    """A minor release of Spark with a jar.

    `name` is the release, such as `4.2`; `version` the patch release that the jar is compiled against and tested with;
    `scala` its Scala. `reads` is whether its classes can read state outside of a query, `follows` whether batch by
    batch, and `converts` whether they can write it.
    """

    name: str
    version: str
    scala: str = "2.13"
    reads: bool = True
    follows: bool = True
    converts: bool = True

    @property
    def jar(self) -> str:
        """The name of its jar."""
        return f"spark-dstl-spark{self.name}_{self.scala}-{__version__}.jar"

    def has(self, version: str) -> bool:
        """Whether a version of Spark is of this line."""
        return version == self.name or version.startswith(f"{self.name}.")


# The newest first. project/SparkLine.scala has the same for the build, and a test compares the two.
LINES = (
    SparkLine("4.3", "4.3.0"),
    SparkLine("4.2", "4.2.0"),
    SparkLine("4.1", "4.1.1", converts=False),
    SparkLine("4.0", "4.0.2", follows=False, converts=False),
    SparkLine("3.5", "3.5.8", scala="2.12", reads=False, follows=False, converts=False),
)
_OLDER = ", ".join(line.name for line in reversed(LINES[1:]))
INSTALL = 'pip install "spark-dstl[spark]"'
_WORKS_WITH = f"this release of spark-dstl works with Spark {_OLDER} and {LINES[0].name}"
_CORE = re.compile(r"spark-core_(?P<scala>[0-9.]+)-(?P<spark>.+)\.jar")


def installed_line() -> SparkLine:
    """Return the line of the Spark that PySpark would start.

    Raises `UnsupportedSpark` unless PySpark and that Spark are of one line with a jar.
    """
    try:
        import pyspark
    except ModuleNotFoundError:
        raise UnsupportedSpark(f"PySpark is not installed; {_WORKS_WITH}: {INSTALL}") from None
    line = line_of(pyspark.__version__, "PySpark", f"is installed; {INSTALL}")
    home = os.environ.get("SPARK_HOME")
    if not home:
        return line
    way_out = f"is what SPARK_HOME={home} names; name another, or unset it to use the Spark of PySpark"
    found = spark_in(Path(home, "jars"), way_out)
    if found not in (None, line):
        raise UnsupportedSpark(f"PySpark {pyspark.__version__} does not go with Spark {found.version}, which {way_out}")
    return line


def spark_in(jars: Path, where: str) -> SparkLine | None:
    """Return the line of the Spark whose jars are in a directory; None if there is none.

    Raises `UnsupportedSpark`, which ends in `where`, if there is no jar for it.
    """
    found = [match for jar in jars.glob("spark-core_*.jar") if (match := _CORE.fullmatch(jar.name))]
    if not found:
        return None
    line = line_of(found[0]["spark"], "Spark", where)
    if found[0]["scala"] != line.scala:
        raise UnsupportedSpark(
            f"this release of spark-dstl works with Spark {line.name} for Scala {line.scala}; "
            f"Scala {found[0]['scala']} {where}"
        )
    return line


def line_of(version: str, what: str, where: str) -> SparkLine:
    """Return the line of a version of Spark.

    Raises `UnsupportedSpark`, with `what` and `where` around the version, if there is no jar for it.
    """
    for line in LINES:
        if line.has(version):
            return line
    raise UnsupportedSpark(f"{_WORKS_WITH}; {what} {version} {where}")
