# SPDX-License-Identifier: Apache-2.0
"""The commands and the program of docs/inspect.md run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from invoked import dstl
from written_checkpoint import WrittenCheckpoint, aged

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "inspect.md"

in_a_checkout = pytest.mark.skipif(not PAGE.exists(), reason="only in a checkout of the whole project")


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    WrittenCheckpoint(tmp_path / "clicks").begin().batches(range(6), snapshots=(2,))
    return aged(tmp_path)


def blocks(language: str) -> list[str]:
    """The blocks of a language on the page that are not marked as not run."""
    text = re.sub(r"<!-- not run: .*? -->\n```.*?```", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@in_a_checkout
def test_the_commands_of_the_page_run_in_their_order(checkpoints: Path) -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("dstl ")]
    assert len(lines) > 10
    for line in lines:
        words = shlex.split(line.split(" > ")[0].replace("/checkpoints", str(checkpoints)))
        result = dstl(*words[1:])
        assert result.exit_code == 0, f"{line}: {result.output}"
    assert not (checkpoints / "clicks/commits/4").exists()


@in_a_checkout
def test_the_programs_of_the_page_run(checkpoints: Path) -> None:
    program = "".join(blocks("python")).replace("/checkpoints", str(checkpoints))
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["16", "6", "5"]
