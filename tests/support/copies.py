# SPDX-License-Identifier: Apache-2.0
"""Copies of checkpoints whose query has stopped."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path


def copied(checkpoint: Path, to: Path) -> Path:
    """Copy a checkpoint, without files that disappear meanwhile: a run that ends deletes what it needs no more."""

    def copy(source: str, target: str) -> None:
        with suppress(FileNotFoundError):
            shutil.copy2(source, target)

    shutil.copytree(checkpoint, to, copy_function=copy)
    return to
