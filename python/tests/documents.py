"""What README.md, CONTRIBUTING.md and the pages of docs/ tell people to type, and where they lead them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<content>.*?)^ *```$", re.DOTALL | re.MULTILINE)
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


class Page:
    """One Markdown file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.text = path.read_text(encoding="utf-8")

    def blocks(self, *languages: str) -> Iterator[str]:
        """Return the content of each block of code in one of these languages."""
        for block in _BLOCK.finditer(self.text):
            if block["language"] in languages:
                lines = block["content"].splitlines()
                yield "\n".join(line.removeprefix(block["indent"]) for line in lines) + "\n"

    @cached_property
    def prose(self) -> str:
        """What is in no block of code."""
        return _BLOCK.sub("", self.text)

    @cached_property
    def commands(self) -> list[Command]:
        """All commands: those of blocks, and those within sentences."""
        found = []
        for block in self.blocks("sh"):
            for line in block.replace("\\\n", " ").splitlines():
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
