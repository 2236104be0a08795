# SPDX-License-Identifier: Apache-2.0
"""Reads the table of Spark versions in `SparkLine.scala`."""

import re
from pathlib import Path
from typing import NamedTuple

from sources import ROOT


class Line(NamedTuple):
    """A minor version of Spark such as `4.2`, its patch release, and the Scala such as `2.13` of its distribution."""

    name: str
    version: str
    scala: str


def lines(root: Path = ROOT) -> list[Line]:
    """Return the lines that the checkout at `root` has builds for, in the order of the table."""
    return [
        Line(*found) for found in re.findall(r'SparkLine\(\s*"([0-9.]+)", "([0-9.]+)", "([0-9]+\.[0-9]+)', table(root))
    ]


def default_line(root: Path = ROOT) -> str:
    """Return the name of the line that everything is built and tested with."""
    found = re.search(r'val Default\b.*SparkLine\("([0-9.]+)"', table(root))
    assert found is not None, "SparkLine.scala has no default"
    return found[1]


def table(root: Path) -> str:
    """Return the text of the table."""
    return (root / "project" / "SparkLine.scala").read_text(encoding="utf-8")
