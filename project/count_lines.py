# SPDX-License-Identifier: Apache-2.0
"""Prints how many lines each part of the project has, beside the number that it should not exceed.

It counts the files of the project, without drawings and license headers. Run it as `make counts`.
"""

import sys

from sources import ROOT, sources

HEADER = b"SPDX-License-Identifier: Apache-2.0"
DRAWINGS = {".svg", ".png"}
# By folder, the limit that the maintainers have set; None without one.
LIMITS = {
    "jvm/log/src/main": 10_500,
    "jvm/spark/src/main": 5_500,
    "python/src": 8_500,
    "jvm/log/src/test": None,
    "jvm/spark/src/test": None,
    "jvm/sim": None,
    "jvm/flaws": None,
    "jvm/bench": None,
    "python/bench": None,
    "python/tests": None,
    "tests": None,
    "project": None,
    "docs": None,
    "": 60_000,
}
README_WORDS = 800


def main() -> int:
    """Print the table and return 0."""
    lines = {
        path.relative_to(ROOT).as_posix(): (content := path.read_bytes()).count(b"\n") - (HEADER in content[:200])
        for path in sources()
        if path.suffix not in DRAWINGS
    }
    for folder, limit in LIMITS.items():
        count = sum(of for name, of in lines.items() if not folder or name.startswith(f"{folder}/"))
        print(row(folder or "all", count, limit))
    print(row("words of README.md", len((ROOT / "README.md").read_text(encoding="utf-8").split()), README_WORDS))
    return 0


def row(name: str, count: int, limit: int | None) -> str:
    """Return one line of the table."""
    verdict = "" if limit is None else f"of {limit:>6,}" + ("" if count <= limit else "  too many")
    return f"{name:<20} {count:>7,} {verdict}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
