"""What the scripts share that write pages of docs/ from the code."""

import sys
from pathlib import Path


def write_or_check(target: Path, content: str, source: str) -> int:
    """Write the page, or with `--check` among the arguments say if it is not up to date; return the exit code."""
    if "--check" not in sys.argv[1:]:
        target.write_text(content, encoding="utf-8")
        return 0
    if target.exists() and target.read_text(encoding="utf-8") == content:
        return 0
    print(f"{target} is not what the {source} say: run make docs", file=sys.stderr)
    return 1
