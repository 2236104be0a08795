# SPDX-License-Identifier: Apache-2.0
"""Reads the table of Spark versions in `SparkLine.scala`."""

import re
from pathlib import Path

from sources import ROOT


def lines(root: Path = ROOT) -> dict[str, str]:
    """Return the minor versions of Spark that the checkout at `root` has builds for, in the order of the table.

    Each, such as `4.2`, has the Scala of its distribution, such as `2.13`.
    """
    return dict(re.findall(r'SparkLine\(\s*"([0-9.]+)", "[0-9.]+", "([0-9]+\.[0-9]+)', table(root)))


def default_line(root: Path = ROOT) -> str:
    """Return the name of the line that everything is built and tested with."""
    found = re.search(r'val Default\b.*SparkLine\("([0-9.]+)"', table(root))
    assert found is not None, "SparkLine.scala has no default"
    return found[1]


def table(root: Path) -> str:
    """Return the text of the table."""
    return (root / "project" / "SparkLine.scala").read_text(encoding="utf-8")
