# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest
from written_checkpoint import WrittenCheckpoint


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    """Batches 0 to 3 in the log."""
    checkpoint = WrittenCheckpoint(tmp_path / "q").begin()
    for batch in range(4):
        checkpoint.batch(batch)
    return checkpoint
