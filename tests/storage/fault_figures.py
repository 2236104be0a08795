"""What became of queries under faults of storage, as it is written down, and as docs/storage.md says it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures" / "storage-faults.json"
# With this variable, tests write down what they see of ours.
RECORD = "SPARK_DSTL_TEST_RECORD"
CONTENDERS = ("spark-dstl", "stock")
# When a query meets its fault: each has a table of its own.
WHEN = ("while writing", "in recovery", "on HDFS")
NOT_RUN = "not run"
# What tells errors apart in the text of an exception: the names of ours; else the last class that it names, with the
# beginning of its message; else the name that Spark gives it.
_OURS = re.compile(r"DSTL_\w+")
_NAMED = re.compile(r"(?:\b[a-z]\w*\.)*\b([A-Z]\w*(?:Exception|Error))\b:? ?([^:(;\n]{0,80})")
_OF_SPARK = re.compile(r"^\[([A-Z_]+)[\].]")
_PATH = re.compile(r"\S*/\S*/\S*[^\s.]")
_MOST = 100


@dataclass
class Figures:
    """All results so far, by the key of the case and by contender. What is there of others stays."""

    path: Path = FIGURES
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    @staticmethod
    def read(path: Path = FIGURES) -> Figures:
        """What is in the file; nothing if there is none."""
        return Figures(path, json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})

    def add(self, key: str, contender: str, failures: Sequence[str], wrong: str, met: int | None = None) -> None:
        """Write one result down. `met` is how many requests met the fault, where it lies in requests."""
        said = {"failures": [short(failure) for failure in failures], "wrong": wrong, "met": met}
        kept = {name: value for name, value in said.items() if value not in ("", None)}
        self.found.setdefault(key, {})[contender] = kept
        self.path.write_text(json.dumps(self.found, indent=2, sort_keys=True) + "\n", encoding="utf-8")

    def rows(self, when: str) -> list[str]:
        """Rows of one table: fault, what meets it, and what became of each contender."""
        found = []
        for key, by_contender in sorted(self.found.items()):
            at, of, name = key.split(": ", 2)
            if at == when:
                cells = [cell(by_contender.get(contender)) for contender in CONTENDERS]
                found.append(f"| {' | '.join([name, of, *cells])} |")
        return found


def cell(result: Mapping[str, Any] | None) -> str:
    """What became of a query, in a few words."""
    if result is None:
        return NOT_RUN
    failures, wrong = result["failures"], result.get("wrong", "")
    if not failures:
        return f"not survived: {wrong}" if wrong else "survived"
    errors = ", ".join(f"`{error}`" for error in dict.fromkeys(failures))
    times = "failed" if len(failures) == 1 else f"failed {len(failures)} times"
    return f"{times}, {errors}; {wrong or 'went on when it was started again'}"


def short(error: str) -> str:
    """The name of an error, and what it says first; of ours the name alone."""
    if found := _OURS.search(error):
        return found[0]
    named = _NAMED.findall(error)
    if not named:
        of_spark = _OF_SPARK.search(error)
        return of_spark[1] if of_spark else without_paths(error.splitlines()[0])[:_MOST].strip()
    name, message = named[-1]
    return f"{name}: {without_paths(message).removesuffix('SQLSTATE')}".strip(" :")


def without_paths(text: str) -> str:
    """The same without the names of objects, which are others each time."""
    return _PATH.sub("…", text)
