# SPDX-License-Identifier: Apache-2.0
"""Checks that no text of the project contains a turn of phrase that CONTRIBUTING.md advises against.

Prints a line for each place, `path:line: found: instead`, and exits with 1 if there is any. It reads all files that git
tracks, except data and drawings. A line that contains `language: quoted` is left out: it quotes somebody else's words.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sources import ROOT, sources

DATA = {".svg", ".png", ".json", ".log", ".bin", ".parquet", ".crc", ".csv"}
# What is found, and what to write instead.
TURNS = {
    r"nobody|no one": "name the class, process or operator, or what is missing",
    r"whoever": "name the class, process or operator",
    r"what is said": "name the message, argument or option",
    r"says? so|said so": "log, report or return it",
    r"(?<!no )(?:goes|go|going|went) on": "continue",
    r"(?:let|lets|letting) go": "release",
    r"(?:is|are|was|were|been|be) told(?! apart)": "receives, is configured with, or names the message",
    r"believe[sd]?": "accept or reject",
    r"there is to be": "name what happens",
    r"for good": "permanently",
    r"and the like": "list what is meant, or 'such as'",
    r"(?P<word>the|an?|which|is|are|of|in|and|or|for|it|its|this|with|by|not) (?P=word)": "one word once",
}
PATTERN = re.compile("|".join(rf"(?P<t{number}>\b(?:{turn})\b)" for number, turn in enumerate(TURNS)), re.IGNORECASE)


def main() -> int:
    """Check all files, or those that are named, and return the exit code."""
    named = [Path(name).resolve() for name in sys.argv[1:]]
    found = [place for path in named or sources() if is_text(path) for place in places(path)]
    for place in found:
        print(place)
    return 1 if found else 0


def is_text(path: Path) -> bool:
    """Return whether a file holds text that people write; not this one, which lists the turns."""
    return path.is_file() and path.suffix not in DATA and path != Path(__file__).resolve() and path.name != "LICENSE"


def places(path: Path) -> Iterator[str]:
    """Yield a line for each place in a file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return
    for number, line in enumerate(lines, 1):
        if "language: quoted" in line:
            continue
        for match in PATTERN.finditer(line):
            instead = list(TURNS.values())[int(str(match.lastgroup)[1:])]
            yield f"{path.relative_to(ROOT)}:{number}: {match[0]!r}: {instead}"


if __name__ == "__main__":
    sys.exit(main())
