# SPDX-License-Identifier: Apache-2.0
"""The batches of a query, grouped for tables and charts."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_dstl.monitoring.query_metrics import QueryMetrics

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
"""The times of a batch, by field of `QueryMetrics`."""

PARTS = ("source_ms", "planning_ms", "offsets_write_ms", "tasks_ms", "commit_ms")
"""The parts of a batch, in their order; the rest is Spark's own."""


@dataclass(frozen=True)
class Run:
    """The batches of one query, the oldest first, without duplicates."""

    name: str
    query_id: str
    batches: tuple[QueryMetrics, ...]

    def values(self, field: str) -> list[int]:
        """Return the values of a field, without None."""
        found = (getattr(batch, field) for batch in self.batches)
        return [value for value in found if value is not None]


def runs_of(batches: Sequence[QueryMetrics]) -> list[Run]:
    """Group batches by query, in the order of the queries' first batches."""
    by_query: dict[str, dict[tuple[str, int], QueryMetrics]] = {}
    for batch in batches:
        by_query.setdefault(batch.query_id, {})[batch.run_id, batch.batch] = batch
    return [
        Run(kept[0].name or query, query, tuple(kept))
        for query, found in by_query.items()
        if (kept := sorted(found.values(), key=lambda batch: (batch.started_at, batch.batch)))
    ]


def grouped(run: Run, most: int) -> list[tuple[QueryMetrics, ...]]:
    """Divide the batches into at most `most` groups of neighbours, of equal size but the last."""
    size = math.ceil(len(run.batches) / most)
    return [run.batches[start : start + size] for start in range(0, len(run.batches), size)]


def mean(batches: Sequence[QueryMetrics], figure: Callable[[QueryMetrics], int | None]) -> float:
    """Average a figure; None counts as 0."""
    return sum(figure(batch) or 0 for batch in batches) / len(batches)
