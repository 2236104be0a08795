# SPDX-License-Identifier: Apache-2.0
"""Results of the measurements on storage servers, in docs/figures, and the tables of them in docs/results."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"
FAULTS, LONG_RUN, REQUESTS = (FIGURES / f"storage-{name}.json" for name in ("faults", "long-run", "requests"))
# With this variable, tests record the results of spark-dstl.
RECORD = "SPARK_DSTL_TEST_RECORD"
CONTENDERS = ("spark-dstl", "stock")
# The situation in which a query meets its fault: each has a table.
WHEN = ("while writing", "in recovery", "on HDFS")
NOT_RUN = "not run"
# An error is named by its condition of spark-dstl; else by the last class in its text, with the beginning of the
# message; else by Spark's condition.
_OURS = re.compile(r"DSTL_\w+")
_NAMED = re.compile(r"(?:\b[a-z]\w*\.)*\b([A-Z]\w*(?:Exception|Error))\b:? ?([^:(;\n]{0,80})")
_OF_SPARK = re.compile(r"^\[([A-Z_]+)[\].]")
_PATH = re.compile(r"\S*/\S*/\S*[^\s.]")
_MOST = 100

MEBIBYTE = 1 << 20
IN_BYTES = ("heap", "resident", "bytes")
NAMES = {
    "threads": "threads of the driver",
    "heap": "heap of the driver, collected, MiB",
    "resident": "memory of the driver's process, MiB",
    "objects": "objects of the checkpoint",
    "bytes": "size of the checkpoint, MiB",
    "connections": "connections at the time",
}


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Write results as JSON, one of them a line."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(of)}" for name, of in found.items())
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


@dataclass
class Figures:
    """Results of faults, by the key of the case and by contender. Those of other cases are kept."""

    path: Path = FAULTS
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    @staticmethod
    def read(path: Path = FAULTS) -> Figures:
        """Read the file; no results if there is none."""
        return Figures(path, json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})

    def add(self, key: str, contender: str, failures: Sequence[str], wrong: str, met: int | None = None) -> None:
        """Record one result. `met` is the number of requests that met the fault, if it lies in requests."""
        result = {"failures": [short(failure) for failure in failures], "wrong": wrong, "met": met}
        kept = {name: value for name, value in result.items() if value not in ("", None)}
        self.found.setdefault(key, {})[contender] = kept
        write(self.path, dict(sorted(self.found.items())))

    def rows(self, when: str) -> list[str]:
        """Return the rows of one table: fault, what meets it, and the outcome of each contender."""
        found = []
        for key, by_contender in sorted(self.found.items()):
            at, of, name = key.split(": ", 2)
            if at == when:
                cells = [cell(by_contender.get(contender)) for contender in CONTENDERS]
                found.append(f"| {' | '.join([name, of, *cells])} |")
        return found


def cell(result: Mapping[str, Any] | None) -> str:
    """Return the outcome of a query, in a few words."""
    if result is None:
        return NOT_RUN
    failures, wrong = result["failures"], result.get("wrong", "")
    if not failures:
        return f"not survived: {wrong}" if wrong else "survived"
    errors = ", ".join(f"`{error}`" for error in dict.fromkeys(failures))
    times = "failed" if len(failures) == 1 else f"failed {len(failures)} times"
    return f"{times}, {errors}; {wrong or 'continued after a restart'}"


def short(error: str) -> str:
    """Return the name of an error and the beginning of its message; of spark-dstl the condition alone."""
    if found := _OURS.search(error):
        return found[0]
    named = _NAMED.findall(error)
    if not named:
        of_spark = _OF_SPARK.search(error)
        return of_spark[1] if of_spark else without_paths(error.splitlines()[0])[:_MOST].strip()
    name, message = named[-1]
    return f"{name}: {without_paths(message).removesuffix('SQLSTATE')}".strip(" :")


def without_paths(text: str) -> str:
    """Leave out the names of objects, which differ each time."""
    return _PATH.sub("…", text)


def third(samples: Sequence[Mapping[str, int]], number: int) -> dict[str, float]:
    """Return the median of each figure in one third of a long run."""
    size = len(samples) // 3
    chosen = samples[number * size : (number + 1) * size]
    return {what: statistics.median(sample[what] for sample in chosen) for what in chosen[0]}


def long_runs(path: Path = LONG_RUN) -> dict[str, Any]:
    """Return the long runs, by storage."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def record_long_run(storage: str, seconds: int, samples: Sequence[Mapping[str, int]], path: Path = LONG_RUN) -> None:
    """Record a long run; those on other storages are kept."""
    thirds = [third(samples, number) for number in range(3)]
    most = {what: max(sample[what] for sample in samples) for what in samples[0]}
    of_run = {"seconds": seconds, "batches": samples[-1]["batches"], "samples": len(samples), "most": most}
    found = {**long_runs(path), storage: {**of_run, "thirds": thirds}}
    write(path, found)


def long_run_rows(figures: Mapping[str, Any]) -> list[str]:
    """Return the rows of the table: each figure's median in each third of each run, and its maximum."""
    return [
        f"| {storage} | {name} | {' | '.join(shown(what, value) for value in _values(run, what))} |"
        for storage, run in figures.items()
        for what, name in NAMES.items()
        if what in run["most"]
    ]


def _values(run: Mapping[str, Any], what: str) -> list[float]:
    return [*(one[what] for one in run["thirds"]), run["most"][what]]


def shown(what: str, value: float) -> str:
    return f"{value / MEBIBYTE if what in IN_BYTES else value:,.0f}"
