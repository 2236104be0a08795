# SPDX-License-Identifier: Apache-2.0
"""Runs an incident of docs/cookbook.md: a test causes it, compares the output shown, and runs the commands.

The test uses the blocks of the incident in their order, and fails if it has not used all of them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from documents import Block, blocks, dstl, here, lines_of

PAGE = "docs/cookbook.md"
# Stands for any text.
ANYTHING = "…"


def printed_settings(text: str) -> dict[str, str]:
    """The settings in lines of the form of `spark-defaults.conf`."""
    return dict(line.split(None, 1) for line in text.splitlines() if line.startswith("spark."))


class Recipe:
    """The blocks below a heading of the page. `places` maps paths of the page to those of the test."""

    def __init__(self, title: str, places: Mapping[str, Path | str]) -> None:
        found = blocks(PAGE)
        self._left = [block for block in found if block.heading == title]
        assert self._left, f"{PAGE} has no blocks below {title}"
        self._places = dict(places)

    def __enter__(self) -> Recipe:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert kind or not self._left, f"the test does not use {self._left[0].place}: {self._left[0].text}"

    def sees(self, shown: str) -> None:
        """Check that the output has each line of the next block, in that order."""
        block = self._next("text")
        at = 0
        for line in block.text.splitlines():
            pattern = ".*?".join(re.escape(part) for part in here(line, self._places).strip().split(ANYTHING))
            found = re.compile(pattern).search(shown, at)
            assert found is not None, f"{block.place}: no {line!r} in\n{shown}"
            at = found.end()

    def types(self, exit_code: int = 0) -> str:
        """Run the commands of the next block; returns the output of the last one. All others must succeed."""
        block = self._next("sh")
        *before, last = lines_of(block, self._places)
        for line in before:
            self._run(block, line, 0)
        return self._run(block, last, exit_code)

    def sets(self) -> dict[str, str]:
        """The settings of the next block."""
        return dict(line.split("=", 1) for line in lines_of(self._next("properties"), self._places))

    def _next(self, language: str) -> Block:
        assert self._left, f"the page has no further block: {language} expected"
        block = self._left.pop(0)
        assert block.language == language, f"{block.place}: {block.language}, where the test has {language} next"
        return block

    def _run(self, block: Block, command: str, exit_code: int) -> str:
        if command.startswith("dstl "):
            result = dstl(command)
            code, output = result.exit_code, result.output
        else:
            done = subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True)
            code, output = done.returncode, done.stdout + done.stderr
        assert code == exit_code, f"{block.place}: {command} ends with {code}:\n{output}"
        return output
