"""What the growth benchmark runs: cases, each a query of many batches.

Batches come sooner than in most queries, so what Spark and the log do from time to time is done sooner as well: as
often for each batch as in a query with a batch every ten seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plan import FORMAT_VERSION

STREAMING = "spark.sql.streaming."
LOG = f"{STREAMING}stateStore.dstl."
# Of the query that is stood in for: times in batches are times divided by this.
BATCH_MS = 10_000
BATCHES_OF_AN_HOUR = 3_600_000 // BATCH_MS
# By default, in milliseconds.
MAINTENANCE_MS, MATERIALIZE_MS, PERSIST_DELAY_MS = 60_000, 600_000, 1_000


@dataclass(frozen=True)
class Case:
    """A query of many batches, one every `period_ms`; Spark retains `retain` of them."""

    workload: str
    partitions: int
    batches: int
    period_ms: int
    retain: int = 100
    # Odd, so that samples are of all phases of what happens every ten batches.
    sample_every: int = 7
    heap_every: int = 7
    # Whether changes are in commit entries, so that data files are those of snapshots.
    is_inline: bool = True
    format_version: int = 1

    @property
    def name(self) -> str:
        """Unique in a plan."""
        return f"{self.workload}-{self.partitions}-{self.batches}-v{self.format_version}"

    def scaled(self, millis: int, at_least: int) -> str:
        """Make of a time in a query with a batch every ten seconds one in this."""
        return f"{max(at_least, millis * self.period_ms // BATCH_MS)}ms"

    def confs(self) -> dict[str, str]:
        """Make of the defaults what is as much in batches."""
        return {
            FORMAT_VERSION: str(self.format_version),
            f"{STREAMING}minBatchesToRetain": str(self.retain),
            f"{STREAMING}stateStore.maintenanceInterval": self.scaled(MAINTENANCE_MS, 1),
            f"{LOG}materialize.interval": self.scaled(MATERIALIZE_MS, 1000),
            f"{LOG}batch.persistDelay": self.scaled(PERSIST_DELAY_MS, 10),
        }

    def spec(self, contender: str, root: Path, output: Path, confs: dict[str, str]) -> dict[str, Any]:
        """As the JVM side reads it."""
        return {
            "workload": self.workload,
            "partitions": self.partitions,
            "contender": contender,
            "root": str(root),
            "output": str(output),
            "batches": self.batches,
            "periodMs": self.period_ms,
            "sampleEvery": self.sample_every,
            "heapEvery": self.heap_every,
            "confs": {**self.confs(), **confs},
        }


FULL = [
    Case("aggregation", 16, 3000, period_ms=300),
    Case("windows", 16, 600, period_ms=300),
    Case("medium", 16, 300, period_ms=1000, retain=20, sample_every=3, is_inline=False),
]
QUICK = [Case("aggregation", 4, 120, period_ms=150, retain=10, sample_every=3)]
