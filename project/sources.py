# SPDX-License-Identifier: Apache-2.0
"""Lists the files of the project."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = {
    "target",
    ".build",
    ".venv",
    ".bsp",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    "dist",
    "jars",
}


def sources() -> list[Path]:
    """Return the files that git tracks, and without git those outside of build directories."""
    if not (ROOT / ".git").exists():
        return [path for path in ROOT.rglob("*") if path.is_file() and BUILT.isdisjoint(path.relative_to(ROOT).parts)]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]
