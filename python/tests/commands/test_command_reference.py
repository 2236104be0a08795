# SPDX-License-Identifier: Apache-2.0
"""The commands and the program of docs/inspect.md run."""

import subprocess
import sys
from pathlib import Path

import pytest
from documents import dstl, here, in_a_checkout, lines_of, runnable
from written_checkpoint import WrittenCheckpoint, aged

PAGE = "docs/inspect.md"


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    WrittenCheckpoint(tmp_path / "clicks").begin().batches(range(6), snapshots=(2,))
    return aged(tmp_path)


@in_a_checkout
def test_the_commands_of_the_page_run_in_their_order(checkpoints: Path) -> None:
    places = {"/checkpoints": checkpoints}
    lines = [line for block in runnable(PAGE, "sh") for line in lines_of(block, places) if line.startswith("dstl ")]
    assert len(lines) > 10
    for line in lines:
        result = dstl(line)
        assert result.exit_code == 0, f"{line}: {result.output}"
    assert not (checkpoints / "clicks/commits/4").exists()


@in_a_checkout
def test_the_programs_of_the_page_run(checkpoints: Path) -> None:
    program = here("".join(block.text for block in runnable(PAGE, "python")), {"/checkpoints": checkpoints})
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["16", "6", "5"]
