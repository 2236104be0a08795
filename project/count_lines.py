"""Prints how many lines each part of the project has, beside the number that it should not exceed.

It counts the files that git tracks, without drawings. Run it as `make counts`.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and Path(name).suffix not in DRAWINGS]
    lines = {name: (ROOT / name).read_bytes().count(b"\n") for name in names if (ROOT / name).is_file()}
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
