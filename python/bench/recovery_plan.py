"""What the benchmark of recovery measures: cases, each a query that is brought back by each contender in turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from plan import FORMAT_VERSION, SLOTS, STORES, Delays

OURS, STOCK = "dstl", ("direct", "default")
# What it takes without any state: with the log's own settings, so that a difference is recovery.
EMPTY = "empty"
CONTENDERS = (OURS, *STOCK, EMPTY)
# Bytes of state that a tick adds; see `Workload` in jvm/bench.
TICK_BYTES = {"wide": 40 * 16 * 1024}
# Two executor processes with as many task slots together as other measurements have, and 1 GiB each.
CLUSTER = f"local-cluster[2,{SLOTS // 2},1024]"


@dataclass(frozen=True)
class Case:
    """A query to be brought back; `since` counts batches since the newest snapshots, by contender where they differ.

    "restart" and "large-state" start it again in a process of its own. "lost-executor" runs it in an application with
    two executor processes and kills one, after the last `warm` of the batches since.
    """

    kind: Literal["restart", "lost-executor", "large-state"]
    workload: str
    partitions: int
    since: int
    stock_since: int = -1
    repetitions: int = 5
    before: int = 20
    # Input of each of the batches before the newest snapshots; all others take one.
    ticks: int = 1
    warm: int = 0
    format_version: int = 1
    # Whether the log takes snapshots by its defaults in the batches since; else it takes none.
    as_configured: bool = False
    # Bytes that all requests of a process together move in a second; 0: any number.
    network: int = 0
    contenders: tuple[str, ...] = CONTENDERS

    @property
    def stock(self) -> tuple[str, ...]:
        """Those of the contenders that are stock Spark."""
        return tuple(name for name in self.contenders if name in STOCK)

    @property
    def name(self) -> str:
        """Unique in a plan."""
        snapshots = "-as-configured" if self.as_configured else ""
        return f"{self.kind}-{self.workload}-{self.partitions}-after-{self.since}{snapshots}-v{self.format_version}"

    @property
    def stores(self) -> int:
        """Of all partitions."""
        return self.partitions * STORES[self.workload]

    @property
    def state_bytes(self) -> int:
        """Bytes that the rows of the state hold, where that is much; 0 elsewhere."""
        return self.before * self.ticks * TICK_BYTES.get(self.workload, 0)

    @property
    def network_seconds(self) -> float:
        """How long the network of the storage's model takes for these; 0 where it has no limit."""
        return self.state_bytes / self.network if self.network else 0

    @property
    def measured_phase(self) -> str:
        """What the JVM side calls it."""
        return "lose" if self.kind == "lost-executor" else "recover"

    def delays(self, delays: Delays) -> Delays:
        """Of its storage."""
        return replace(delays, network_bytes_per_second=self.network)

    def master(self, phase: str) -> str | None:
        """Where a phase's tasks run; `None` for the usual."""
        return CLUSTER if phase == "lose" else None

    def batches(self, contender: str) -> tuple[int, int]:
        """How many come before the newest snapshots, and how many after them: as many in all for every contender."""
        all_ = self.before + self.since
        since = self.stock_since if contender in STOCK and self.stock_since >= 0 else self.since
        return (0, 0) if contender == EMPTY else (all_ - since, since)

    def spec(
        self, contender: str, phase: str, root: Path, output: Path, delays: Delays, confs: Mapping[str, str]
    ) -> dict[str, Any]:
        """As the JVM side reads it."""
        before, since = self.batches(contender)
        # Opening stores elsewhere is recovery. What is not: noticing the loss, other tasks, a new process.
        workload = "stateless" if contender == EMPTY and self.kind == "lost-executor" else self.workload
        return {
            "phase": phase,
            "workload": workload,
            "partitions": self.partitions,
            "contender": OURS if contender == EMPTY else contender,
            "root": str(root),
            "output": str(output),
            "delays": self.delays(delays).spec(),
            "stores": self.stores,
            "batchesBefore": before,
            "ticksBefore": self.ticks,
            "batchesSince": max(0, since - self.warm),
            "batchesWarm": self.warm,
            "asConfigured": self.as_configured,
            "confs": {FORMAT_VERSION: str(self.format_version), **confs},
        }


FULL = [
    Case("restart", "aggregation", 64, since=10),
    Case("restart", "join", 64, since=10),
    # Stock Spark takes a snapshot every ten versions: here at its best.
    Case("restart", "accounts", 16, since=600, stock_since=0, ticks=6),
    Case("restart", "accounts", 16, since=600, stock_since=0, ticks=6, as_configured=True),
    Case("lost-executor", "aggregation", 64, since=10, warm=6),
    Case("lost-executor", "join", 64, since=10, warm=6),
    # 5 GB.
    Case("large-state", "wide", 16, since=10, repetitions=3, before=12, ticks=640, network=200_000_000),
]
SOME = (OURS, "direct", EMPTY)
QUICK = [
    Case("restart", "aggregation", 8, since=5, repetitions=1, before=3),
    Case("lost-executor", "aggregation", 8, since=8, repetitions=1, before=3, warm=3, contenders=SOME),
    Case("large-state", "wide", 4, since=5, repetitions=1, before=3, ticks=50, network=200_000_000, contenders=SOME),
]
