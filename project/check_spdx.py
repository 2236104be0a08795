# SPDX-License-Identifier: Apache-2.0
"""Checks that each source file has the SPDX header of its license in its first three lines.

Usage: check_spdx.py [--fix] [FILE ...]. Prints a line for each file without the header, and then exits with 1.
With `--fix`, adds the header as a comment line, after a shebang. Without files, it reads all files that git tracks.
"""

import sys
from pathlib import Path

from sources import ROOT, sources

HEADER = "SPDX-License-Identifier: Apache-2.0"
COMMENT = {".scala": "//", ".sbt": "//", ".java": "//", ".py": "#", ".sh": "#", ".yml": "#"}
FIRST_LINES = 3


def main() -> int:
    """Check all files, or those that are named, and return the exit code."""
    named = [Path(name).resolve() for name in sys.argv[1:] if name != "--fix"]
    without = [path for path in named or sources() if comment_of(path) and not has_header(path)]
    for path in without:
        if "--fix" in sys.argv[1:]:
            add_header(path)
        else:
            print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}: add {HEADER!r}, or run with --fix")
    return 1 if without and "--fix" not in sys.argv[1:] else 0


def comment_of(path: Path) -> str | None:
    """Return what begins a comment in that file, or None if it needs no header."""
    is_script = not path.suffix and path.read_bytes().startswith(b"#!")
    return "#" if is_script or path.name == "Makefile" else COMMENT.get(path.suffix)


def has_header(path: Path) -> bool:
    """Return whether a file has the header where it belongs."""
    return any(HEADER in line for line in path.read_text(encoding="utf-8").splitlines()[:FIRST_LINES])


def add_header(path: Path) -> None:
    """Write the header as the first line, or after a shebang; all other bytes and the file's mode stay."""
    content = path.read_bytes()
    start = content.find(b"\n") + 1 if content.startswith(b"#!") else 0
    path.write_bytes(content[:start] + f"{comment_of(path)} {HEADER}\n".encode() + content[start:])


if __name__ == "__main__":
    sys.exit(main())
