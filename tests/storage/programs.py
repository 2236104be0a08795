# SPDX-License-Identifier: Apache-2.0
"""Programs and jars of the storage tests.

`make storage-tools` builds and fetches them, outside of the checkout.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

import gateway
from gateway import CACHE

HOW = "`make storage-tools` gets it (programs need Go 1.26, jars come from Maven Central; `SPARK=` for another Spark)"


def program(name: str) -> str:
    """Return the path of a program; the test is skipped without it."""
    found = shutil.which(name, path=str(CACHE / "tools")) or shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}: {HOW}")
    return found


def jars(name: str) -> list[Path]:
    """Return the jars of a client or of a server; the test is skipped without them."""
    return in_directory(CACHE / "jars" / name)


def connector() -> list[Path]:
    """Return the jars of the S3 connector for the tests' version of Spark."""
    return in_directory(gateway.connector())


def with_jars(confs: Mapping[str, str], more: Iterable[Path]) -> dict[str, str]:
    """Add jars to the class path."""
    return {**confs, "spark.jars": ",".join(filter(None, [confs.get("spark.jars", ""), *map(str, more)]))}


def in_directory(directory: Path) -> list[Path]:
    """Return all jars of a directory; the test is skipped without them."""
    found = sorted(directory.glob("*.jar"))
    if not found:
        pytest.skip(f"no jars of {directory.name}: {HOW}")
    return found
