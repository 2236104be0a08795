"""The fenced blocks of the documentation's pages, for the tests that run them.

A block that no test can run says so in the line before it, and why: `<!-- not run: needs a cluster -->`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner, Result

from spark_dstl.commands import main

ROOT = Path(__file__).resolve().parents[1]
# What somebody would paste somewhere. Settings, signatures and what one sees are marked as something else.
RUNNABLE = ("python", "sh", "bash", "scala")

_BLOCK = re.compile(
    r"^(?: *<!-- not run: (?P<why>.+?) -->\n+)?(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block: on which page, below which heading of the second level, from which line on, and what is in it."""

    page: str
    heading: str
    line: int
    language: str
    text: str
    not_run: str | None

    @property
    def place(self) -> str:
        """What a failed test calls it."""
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """The pages that users read, relative to the root."""
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]


def blocks(page: str) -> list[Block]:
    """All blocks of a page, in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    headings = [(found.start(), found[1]) for found in re.finditer(r"^## (.+)$", text, re.MULTILINE)]
    return [
        Block(
            page,
            next((title for at, title in reversed(headings) if at < found.start()), ""),
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE),
            found["why"],
        )
        for found in _BLOCK.finditer(text)
    ]


def runnable(page: str, language: str) -> list[Block]:
    """The blocks of a page in a language that a test must run."""
    return [block for block in blocks(page) if block.language == language and block.not_run is None]


def here(text: str, places: Mapping[str, object]) -> str:
    """The text with paths, and what else a test has of its own, in place of those of the page; the longest counts."""
    found = re.compile("|".join(map(re.escape, sorted(places, key=len, reverse=True))))
    return found.sub(lambda one: str(places[one[0]]), text) if places else text


def lines_of(block: Block, places: Mapping[str, object]) -> Iterator[str]:
    """The commands of a block as they are to be typed here."""
    for line in here(block.text, places).splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def dstl(line: str) -> Result:
    """Run a command `dstl` in this process. What would go to a file or another program is printed all the same."""
    words = shlex.split(re.split(r" (?:>>?|\|) ", line)[0], comments=True)
    assert words[0] == "dstl", line
    return CliRunner().invoke(main, words[1:], prog_name="dstl")
