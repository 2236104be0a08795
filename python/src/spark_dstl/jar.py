# SPDX-License-Identifier: Apache-2.0
"""The path of the jar for a Spark application."""

import hashlib
import os
import tempfile
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from spark_dstl.errors import JarNotFound
from spark_dstl.release import LINES, installed_line, line_of
from spark_dstl.version import __version__

if TYPE_CHECKING:
    from importlib.abc import Traversable

JAR_VARIABLE = "SPARK_DSTL_JAR"


def jar_path(spark: str | None = None) -> Path:
    """Return the path of the jar that this package ships for a Spark.

    `spark` is that Spark's version, such as `4.2` or `4.2.1`; by default that of the installed PySpark.

    If the package is in an archive, such as a wheel given with `--py-files`, the jar is unpacked once into the user's
    cache, `~/.cache/spark-dstl` or below `XDG_CACHE_HOME`; if that is not writable, into a temporary directory that
    stays.

    The environment variable `SPARK_DSTL_JAR` names another jar, such as a build of your own, which must be for that
    Spark. Raises `JarNotFound` if there is no file at that place, and `UnsupportedSpark` if there is no jar for that
    Spark, or none is named and PySpark is not installed.
    """
    override = os.environ.get(JAR_VARIABLE)
    if override:
        path = Path(override).absolute()
        if not path.is_file():
            raise JarNotFound(f"{JAR_VARIABLE} is set to {override}, but there is no such file")
        return path
    line = installed_line() if spark is None else line_of(spark, "Spark", "was asked for")
    shipped = _package().joinpath("jars", line.jar)
    if not shipped.is_file():
        others = [other.name for other in LINES if _package().joinpath("jars", other.jar).is_file()]
        if others:
            raise JarNotFound(
                f"this package was built for Spark {' and '.join(others)} alone, not for {line.name}: in a checkout "
                f"`make wheel SPARK={line.name}` builds one for that and `make wheel` one for all; {JAR_VARIABLE} "
                "names another jar"
            )
        raise JarNotFound(
            f"{shipped} is missing, which belongs to this package: install it again with "
            f"`pip install --force-reinstall spark-dstl=={__version__}`, or name a jar with {JAR_VARIABLE}"
        )
    return shipped if isinstance(shipped, Path) else _unpacked(shipped)


def _package() -> "Traversable":
    return resources.files("spark_dstl")


def _unpacked(shipped: "Traversable") -> Path:
    """Return a copy of `shipped` on disk, in a directory that is named by its content."""
    content = shipped.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        target = caches / "spark-dstl" / digest[:16] / shipped.name
        if not target.is_file() or hashlib.sha256(target.read_bytes()).hexdigest() != digest:
            _write(target, content)
        return target
    except (OSError, RuntimeError):
        # A RuntimeError: the user has no home, as in some containers.
        return _temporary(shipped.name, content)


@cache
def _temporary(name: str, content: bytes) -> Path:
    target = Path(tempfile.mkdtemp(prefix="spark-dstl-")) / name
    _write(target, content)
    return target


def _write(target: Path, content: bytes) -> None:
    """Write a file that appears as a whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent)
    hidden = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        hidden.replace(target)
    finally:
        hidden.unlink(missing_ok=True)
