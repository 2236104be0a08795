"""Where the jar is that a Spark application needs."""

import os
from pathlib import Path

from spark_dstl.errors import JarNotFound
from spark_dstl.version import __version__

JAR_VARIABLE = "SPARK_DSTL_JAR"
_JAR_DIRECTORY = Path(__file__).resolve().parent / "jars"


def jar_path() -> Path:
    """Return the path of the jar that this package ships.

    The environment variable `SPARK_DSTL_JAR` names another one, such as a build of your own. Raises `JarNotFound` if
    there is no file at that place.
    """
    override = os.environ.get(JAR_VARIABLE)
    if override:
        path = Path(override).absolute()
        if not path.is_file():
            raise JarNotFound(f"{JAR_VARIABLE} is set to {override}, but there is no such file")
        return path
    path = _JAR_DIRECTORY / f"spark-dstl_2.13-{__version__}.jar"
    if not path.is_file():
        raise JarNotFound(
            f"{path} is missing: run `make jar` if this is a checkout of the sources, "
            "else install the package again: pip install --force-reinstall spark-dstl"
        )
    return path
