# SPDX-License-Identifier: Apache-2.0
"""The other versions of Spark with an environment in this checkout, which `make spark SPARK=...` makes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_dstl.release import LINES, SparkLine, installed_line

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Installed:
    """An installed Spark: the Python environment with it, and the jar for it."""

    line: SparkLine
    python: str
    jar: str


def here() -> Installed:
    """The Spark that the tests run on."""
    line = installed_line()
    return Installed(line, sys.executable, _jar(line))


def others() -> list[Installed]:
    """The installed Sparks of other lines with a jar, the newest first."""
    own = installed_line()
    found = [Installed(line, str(_python(line)), _jar(line)) for line in LINES if line != own]
    return [other for other in found if Path(other.python).exists() and Path(other.jar).exists()]


def jar_of_another() -> str:
    """A jar for another line than that of the tests; without one, the test is skipped."""
    own = installed_line()
    found = [_jar(line) for line in LINES if line != own and Path(_jar(line)).exists()]
    return found[0] if found else pytest.skip("there is no jar for another Spark: `make jars`")


def jar_of(name: str) -> str:
    """The jar for a line; without one, the test is skipped."""
    (line,) = (line for line in LINES if line.name == name)
    return _jar(line) if Path(_jar(line)).exists() else pytest.skip(f"there is no jar for Spark {name}: `make jars`")


def _python(line: SparkLine) -> Path:
    main = ROOT / ".venv"
    is_main = any(main.glob(f"lib/python*/site-packages/pyspark-{line.version}.dist-info"))
    return (main if is_main else ROOT / ".build" / f"spark-{line.name}") / "bin" / "python"


def _jar(line: SparkLine) -> str:
    return str(ROOT / "target" / line.jar)
