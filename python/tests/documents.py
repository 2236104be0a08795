# SPDX-License-Identifier: Apache-2.0
"""What README.md, CONTRIBUTING.md and the pages of docs/ tell people to type, and where they lead them.

A block that no test can run has a line before it that gives the reason: `<!-- not run: needs a cluster -->`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import invoked
import pytest
from click.testing import Result

from spark_dstl.commands import main

ROOT = Path(__file__).resolve().parents[2]

in_a_checkout = pytest.mark.skipif(not (ROOT / "Makefile").exists(), reason="only in a checkout of the whole project")

# Code that a reader types. Settings, signatures and output are marked as something else.
RUNNABLE = ("python", "sh", "bash", "scala")

_BLOCK = re.compile(
    r"^(?: *<!-- not run: (?P<why>.+?) -->\n+)?(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
# What a shell ends one command with, what is followed by a file, and what it puts in the place of another.
_ENDS = {"|", "||", "&&", ";"}
_REDIRECTIONS = {">", ">>", "<"}
_SUBSTITUTION = re.compile(r"\$\(([^()]+)\)")


@dataclass(frozen=True)
class Command:
    """A command line as a page has it. Of one within a sentence the arguments may be words that stand for others."""

    page: str
    words: tuple[str, ...]
    is_complete: bool

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"

    def after(self, *beginning: str) -> tuple[str, ...] | None:
        """Return the words after these; None if it begins otherwise."""
        return self.words[len(beginning) :] if self.words[: len(beginning)] == beginning else None


@dataclass(frozen=True)
class Block:
    """A block of code: its page, the heading of the second level above it, its first line, and its text."""

    page: str
    heading: str
    line: int
    language: str
    text: str
    not_run: str | None = None

    @property
    def place(self) -> str:
        """The page and line, for the messages of tests."""
        return f"{self.page}:{self.line}"


class Page:
    """One Markdown file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.text = path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks of code, in their order."""
        return blocks_of(self.name, self.text)

    @cached_property
    def prose(self) -> str:
        """What is in no block of code."""
        return _BLOCK.sub("", self.text)

    @cached_property
    def commands(self) -> list[Command]:
        """All commands: those of blocks, and those within sentences."""
        found = []
        for block in self.blocks:
            lines = block.text.replace("\\\n", " ").splitlines() if block.language == "sh" else []
            for line in lines:
                found += [Command(self.name, words, True) for words in _commands(line)]
        for span in _SPAN.findall(self.prose):
            found += [Command(self.name, words, False) for words in _commands(span)]
        return found

    @cached_property
    def links(self) -> list[str]:
        """The targets of all links that are not to other sites."""
        return [target for target in _LINK.findall(self.prose) if not re.match(r"[a-z]+:", target)]

    @cached_property
    def anchors(self) -> set[str]:
        """What can follow the `#` of a link to this page, as GitHub makes it of headings."""
        found: set[str] = set()
        for heading in _HEADING.findall(_BLOCK.sub("", self.text)):
            text = _LINK.sub(lambda link: link[0][1:].partition("]")[0], heading).replace("`", "")
            base = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            number = next(n for n in range(100) if (f"{base}-{n}" if n else base) not in found)
            found.add(f"{base}-{number}" if number else base)
        return found


def pages() -> list[Page]:
    """Return all pages that people read."""
    return [
        Page(path)
        for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
        if path.exists()
    ]


def blocks_of(page: str, text: str) -> list[Block]:
    """Return the blocks of code in a text."""
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


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, named relative to the root."""
    return Page(ROOT / page).blocks


def user_pages() -> list[str]:
    """Return the pages that users read, relative to the root."""
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]


def runnable(page: str, language: str) -> list[Block]:
    """Return the blocks of a page in a language that a test must run."""
    return [block for block in blocks(page) if block.language == language and block.not_run is None]


def examples_of_commands() -> list[Block]:
    """Return the examples in the help of the commands, which the docs site shows as blocks."""
    found = []
    for name, command in main.commands.items():
        lines = [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]
        found.append(Block("dstl --help", f"dstl {name}", 1, "sh", "\n".join(lines)))
    return found


def here(text: str, places: Mapping[str, object]) -> str:
    """Return the text with a test's paths in place of those of the page; the longest counts."""
    found = re.compile("|".join(map(re.escape, sorted(places, key=len, reverse=True))))
    return found.sub(lambda one: str(places[one[0]]), text) if places else text


def lines_of(block: Block, places: Mapping[str, object]) -> Iterator[str]:
    """Yield the commands of a block, with a test's paths."""
    for line in here(block.text, places).splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def dstl(line: str) -> Result:
    """Run a command `dstl` in this process. Output that the line sends to a file or a program is in the result."""
    words = shlex.split(re.split(r" (?:>>?|\|) ", line)[0], comments=True)
    assert words[0] == "dstl", line
    return invoked.dstl(*words[1:])


def _commands(line: str) -> Iterator[tuple[str, ...]]:
    """Take a line apart into commands, without variables before them and what substitutes them."""
    for inner in _SUBSTITUTION.findall(line):
        yield from _commands(inner)
    try:
        lexer = shlex.shlex(_SUBSTITUTION.sub("SUBSTITUTED", line), posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        # Words of a sentence with an apostrophe in them.
        return
    command: list[str] = []
    before = ""
    for word in [*words, ";"]:
        is_file, before = before in _REDIRECTIONS, word
        if word not in _ENDS:
            command += [] if is_file or word in _REDIRECTIONS else [word]
            continue
        while command and re.match(r"[A-Z_]+=", command[0]):
            command.pop(0)
        if command:
            yield tuple(command)
        command = []
