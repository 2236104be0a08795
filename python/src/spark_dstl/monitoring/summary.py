# SPDX-License-Identifier: Apache-2.0
"""What many batches of a query come to: percentiles, and curves that are short enough to be drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_dstl.monitoring.query_metrics import QueryMetrics

PERCENTILES = (50, 90, 99, 99.9)
"""Those that a table shows."""

TIMES: dict[str, str] = {
    "batch_ms": "batch",
    "source_ms": "sources",
    "planning_ms": "planning",
    "offsets_write_ms": "offsets entry",
    "tasks_ms": "tasks",
    "commit_ms": "commit",
    "barrier_wait_ms": "of which the barrier",
    "commit_entry_write_ms": "of which the commit entry",
}
"""What takes time, by field of `QueryMetrics`."""

PARTS = ("source_ms", "planning_ms", "offsets_write_ms", "tasks_ms", "commit_ms")
"""Of the times, those that a batch consists of, in its order; what is left of it is Spark's own."""


@dataclass(frozen=True)
class Run:
    """All batches that are known of one query, the oldest first; a batch that is there twice counts once."""

    name: str
    query_id: str
    batches: tuple[QueryMetrics, ...]

    def values(self, field: str) -> list[int]:
        """Return what the batches have of a field, without those that have nothing."""
        found = (getattr(batch, field) for batch in self.batches)
        return [value for value in found if value is not None]


def runs_of(batches: Sequence[QueryMetrics]) -> list[Run]:
    """Sort batches by query, in the order in which the queries come first."""
    by_query: dict[str, dict[tuple[str, int], QueryMetrics]] = {}
    for batch in batches:
        by_query.setdefault(batch.query_id, {})[batch.run_id, batch.batch] = batch
    return [
        Run(kept[0].name or query, query, tuple(kept))
        for query, found in by_query.items()
        if (kept := sorted(found.values(), key=lambda batch: (batch.started_at, batch.batch)))
    ]


def percentile(values: Sequence[int], percent: float) -> int | None:
    """Take the nearest rank; `None` where there are so few values that it would be the largest anyway."""
    rank = math.ceil(round(len(values) * percent / 100, 6))
    return sorted(values)[rank - 1] if 0 < rank < len(values) else None


def grouped(run: Run, most: int) -> list[tuple[QueryMetrics, ...]]:
    """Divide the batches into at most so many groups of neighbours, all of one size but the last."""
    size = math.ceil(len(run.batches) / most)
    return [run.batches[start : start + size] for start in range(0, len(run.batches), size)]


def mean(batches: Sequence[QueryMetrics], figure: Callable[[QueryMetrics], int | None]) -> float:
    """Average a figure; nothing counts as 0."""
    return sum(figure(batch) or 0 for batch in batches) / len(batches)
