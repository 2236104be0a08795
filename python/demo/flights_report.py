# SPDX-License-Identifier: Apache-2.0
"""The output of the demo: a progress bar, then a table and the differing rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import Progress

from spark_dstl import QueryMetrics
from spark_dstl.checkpoint.format.names import kind_of

# Kinds of objects, by what they make durable.
OF_BATCHES = ("offsets", "commit entry")
OF_STATE = ("data file", "changelog")
OTHERS = ("source", "snapshot", "snapshot file", "metadata", "claim", "end of run", "other")


class ProgressBar:
    """A bar on a terminal; elsewhere, a line for every batch."""

    def __init__(self, batches: int) -> None:
        self._console = Console(stderr=True)
        self._bar = Progress(console=self._console, disable=not self._console.is_terminal)
        self._batches = self._bar.add_task("", total=batches)
        self._rows = 0
        self._bar.start()

    def batch(self, found: QueryMetrics) -> None:
        """Show that a batch was committed."""
        self._rows += found.input_rows
        text = f"batch {found.batch + 1}: {self._rows:,} rows, last batch {found.batch_ms / 1000:.2f} s"
        self._bar.update(self._batches, completed=found.batch + 1, description=text)
        if self._bar.disable:
            self.note(text)

    def note(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, highlight=False, soft_wrap=True)

    def end(self) -> None:
        """End the bar."""
        self._bar.stop()


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
        return Counter(kind_of(str(path)) for path in self._seen)


@dataclass
class Figures:
    """The measurements of one run; `log_bytes` is None without a log, `requests` is empty without a server."""

    batches: list[QueryMetrics] = field(default_factory=list)
    executions: list[int] = field(default_factory=list)
    objects: Counter[str] = field(default_factory=Counter)
    log_bytes: int | None = None
    requests: Counter[str] = field(default_factory=Counter)
    killed_batch: int = 0
    recovery_from_process: float = 0.0
    recovery_from_query: float = 0.0


def table(figures: Figures) -> Iterator[str]:
    """Yield the lines of the table, one for each figure."""
    committed = len({of.batch for of in figures.batches})
    again = sorted({batch for batch in figures.executions if figures.executions.count(batch) > 1})
    commit = [of.offsets_write_ms + of.commit_ms for of in figures.batches]
    # Reported by the batch after it; of a query without a log by none.
    barrier = [
        of.barrier_wait_ms + (of.commit_entry_write_ms or 0) for of in figures.batches if of.barrier_wait_ms is not None
    ]
    twice = ", ".join(map(str, again)) or "none"
    rows: list[tuple[str, str]] = [
        ("batches", f"{committed} reported, killed in {figures.killed_batch}, run twice: {twice}"),
        ("object writes per batch", writes(figures.objects, (*OF_BATCHES, *OF_STATE), committed)),
        ("other object writes", writes(figures.objects, OTHERS, committed)),
        ("batch time p50 / most", half_and_most([of.batch_ms for of in figures.batches])),
        ("commit time p50 / most", half_and_most(commit)),
        ("barrier time p50 / most", half_and_most(barrier)),
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


def half_and_most(millis: Sequence[int]) -> str:
    """Return the median and the maximum as text."""
    return f"{median(millis):.0f} / {max(millis)} ms" if millis else "not reported"


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
