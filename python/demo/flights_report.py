# SPDX-License-Identifier: Apache-2.0
"""The output of the demo: a progress bar, then a table and the differing rows."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, TextIO

BAR_WIDTH = 30

# Kinds of objects that make state durable.
DURABLE_STATE = ("data files of the log", "changelogs")

Progress = dict[str, Any]


class ProgressBar:
    """One line that is rewritten on a terminal; elsewhere, a line for every batch."""

    def __init__(self, total: int, out: TextIO = sys.stderr) -> None:
        self._total = total
        self._out = out
        self._live = out.isatty()
        self._rows = 0

    def batch(self, progress: Progress) -> None:
        """Show that a batch was committed."""
        self._rows += int(progress["numInputRows"])
        done = int(progress["batchId"]) + 1
        filled = BAR_WIDTH * min(done, self._total) // self._total
        bar = "#" * filled + "." * (BAR_WIDTH - filled)
        seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
        self._show(f"[{bar}] batch {done}/{self._total}  {self._rows:,} rows  last batch {seconds:.2f} s")

    def note(self, text: str) -> None:
        """Print a line."""
        print(f"{self._clear()}{text}", file=self._out, flush=True)

    def end(self) -> None:
        """End the line of the bar."""
        if self._live:
            print(file=self._out, flush=True)

    def _show(self, line: str) -> None:
        if self._live:
            print(f"{self._clear()}{line}", end="", file=self._out, flush=True)
        else:
            print(line, file=self._out, flush=True)

    def _clear(self) -> str:
        return "\r\033[K" if self._live else ""


class ObjectCounter:
    """Counts the objects that appear below a directory, without temporary files and local checksums.

    On an object store, each of them is one write.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: set[Path] = set()

    def look(self) -> Counter[str]:
        """List the objects; return the number of objects of each kind that were ever listed."""
        for directory, _, names in os.walk(self._root):
            below = Path(directory).relative_to(self._root)
            self._seen.update(below / name for name in names if not name.startswith("."))
        return Counter(kind_of(path) for path in self._seen)


def kind_of(path: Path) -> str:
    """Return the kind of an object by its path below the checkpoint."""
    directories = {
        "offsets": "offsets",
        "commits": "commits",
        "sources": "sources",
        "dstl/data": "data files of the log",
        "dstl": "claims of runs",
    }
    for directory, kind in directories.items():
        if path.is_relative_to(directory):
            return kind
    return "changelogs" if ".changelog" in path.name else "snapshots and schemas"


@dataclass
class Figures:
    """The measurements of one run; `log_bytes` is None without a log, `requests` is empty without a server."""

    progress: list[Progress] = field(default_factory=list)
    executions: list[int] = field(default_factory=list)
    objects: Counter[str] = field(default_factory=Counter)
    log_bytes: int | None = None
    requests: Counter[str] = field(default_factory=Counter)
    killed_batch: int = 0
    recovery_from_process: float = 0.0
    recovery_from_query: float = 0.0


def table(figures: Figures) -> Iterator[str]:
    """Yield the lines of the table, one for each figure."""
    committed = len({entry["batchId"] for entry in figures.progress})
    again = sorted({batch for batch in figures.executions if figures.executions.count(batch) > 1})
    commit = [duration(entry, "walCommit") + duration(entry, "commitOffsets") for entry in figures.progress]
    batch = [duration(entry, "triggerExecution") for entry in figures.progress]
    barrier = barrier_times(figures.progress)
    rows: list[tuple[str, str]] = [
        ("batches", f"{committed} reported, killed in {figures.killed_batch}, run twice: {join(again) or 'none'}"),
        ("object writes per batch", writes(figures.objects, ("offsets", "commits", *DURABLE_STATE), committed)),
        (
            "other object writes",
            writes(figures.objects, ("sources", "snapshots and schemas", "claims of runs"), committed),
        ),
        ("batch time p50 / p99", f"{quantiles(batch)} ms"),
        ("commit time p50 / p99", f"{quantiles(commit)} ms"),
        ("barrier time p50 / p99", f"{quantiles(barrier)} ms" if barrier else "not reported"),
        ("log size", log_size(figures.log_bytes)),
        *requests(figures.requests),
        ("recovery, from process start", f"{figures.recovery_from_process:.1f} s to the first committed batch"),
        ("recovery, from query start", f"{figures.recovery_from_query:.1f} s to the first committed batch"),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        yield f"{name:<{width}}  {value}"


def requests(found: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield the row with the numbers of requests to the server, if there is one, for the whole run."""
    if found:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.most_common())
        yield "requests to S3", f"{found.total():,}: {kinds}"


def log_size(log_bytes: int | None) -> str:
    """Return the size of the log as text."""
    return "no log" if log_bytes is None else f"{log_bytes / 1e6:.1f} MB in commit entries and data files"


def writes(objects: Counter[str], kinds: Sequence[str], batches: int) -> str:
    """Return the average number of objects of these kinds per batch, in all and for each kind."""
    found = {kind: objects[kind] / max(1, batches) for kind in kinds if objects[kind]}
    return f"{sum(found.values()):.1f}: " + ", ".join(f"{count:.1f} {kind}" for kind, count in found.items())


def barrier_times(progress: Iterable[Progress]) -> list[int]:
    """Return the milliseconds of each barrier, which the batch after it reports; empty without a log."""
    times = []
    for entry in progress:
        waits = [
            sum(operator["customMetrics"].get(name, 0) for name in ("dstlBarrierWaitMs", "dstlCommitEntryWriteMs"))
            for operator in entry.get("stateOperators", [])
            if "dstlBarrierWaitMs" in operator.get("customMetrics", {})
        ]
        if waits:
            times.append(max(waits))
    return times


def duration(progress: Progress, name: str) -> int:
    """One of the durations of a batch in milliseconds; 0 if the progress lacks it."""
    return int(progress["durationMs"].get(name, 0))


def quantiles(values: Sequence[int]) -> str:
    """Median and 99th percentile, the latter by nearest rank."""
    if not values:
        return "-"
    ranked = sorted(values)
    return f"{median(ranked):.0f} / {ranked[min(len(ranked) - 1, int(0.99 * len(ranked)))]}"


def join(numbers: Iterable[int]) -> str:
    """Join numbers with commas."""
    return ", ".join(str(number) for number in numbers)


def differences(verdict: dict[str, Any]) -> Iterator[str]:
    """Yield the verdict, and the rows that only one side has."""
    if verdict["missing"] == 0 and verdict["unexpected"] == 0:
        yield f"result equal: all {verdict['expected']:,} windows are those of the batch computation"
        return
    yield f"RESULT DIFFERS: {verdict['expected']:,} windows in the batch, {verdict['streamed']:,} in the stream"
    for side, title in (("missing", "only in the batch"), ("unexpected", "only in the stream")):
        rows = verdict[f"{side}_rows"]
        yield f"{title}: {verdict[side]:,} rows" + (f", the first {len(rows)}:" if rows else "")
        for row in rows:
            yield "  " + "  ".join(f"{name}={value}" for name, value in row.items())


def size_of(directory: Path) -> int:
    """Bytes in all files below a directory; 0 if there is no such directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
