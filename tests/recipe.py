"""An incident of docs/cookbook.md, rehearsed: a test makes it, sees what the page says, and types what it says.

The test takes the blocks of the incident one after the other, and must have taken all of them at its end, so that the
page has nothing in it that was not tried.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from doc_blocks import Block, blocks, dstl, here, lines_of

PAGE = "docs/cookbook.md"
# Stands for what differs from case to case.
ANYTHING = "…"


def printed_settings(text: str) -> dict[str, str]:
    """The settings among lines as they are in `spark-defaults.conf`."""
    return dict(line.split(None, 1) for line in text.splitlines() if line.startswith("spark."))


class Recipe:
    """The blocks below a heading of the page. `places` are paths of the page, and those that the test has for them."""

    def __init__(self, title: str, places: Mapping[str, Path | str]) -> None:
        found = blocks(PAGE)
        self._left = [block for block in found if block.heading == title]
        assert self._left, f"{PAGE} has no blocks below {title}"
        self._places = dict(places)

    def __enter__(self) -> Recipe:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert kind or not self._left, f"the test does not get to {self._left[0].place}: {self._left[0].text}"

    def sees(self, shown: str) -> None:
        """The next block is what one sees: each of its lines is one of what is shown, in that order."""
        block = self._next("text")
        at = 0
        for line in block.text.splitlines():
            pattern = ".*?".join(re.escape(part) for part in here(line, self._places).strip().split(ANYTHING))
            found = re.compile(pattern).search(shown, at)
            assert found is not None, f"{block.place}: nobody sees {line!r} in\n{shown}"
            at = found.end()

    def types(self, exit_code: int = 0) -> str:
        """Type the commands of the next block; returns what the last one prints. All others must succeed."""
        block = self._next("sh")
        *before, last = lines_of(block, self._places)
        for line in before:
            self._run(block, line, 0)
        return self._run(block, last, exit_code)

    def sets(self) -> dict[str, str]:
        """The settings of the next block, as a session takes them."""
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
