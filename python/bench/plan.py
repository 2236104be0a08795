# SPDX-License-Identifier: Apache-2.0
"""What `bench.py compare` measures: cells, each one workload on a number of partitions, run by some contenders in turn.

Every cell runs in a separate process. Within it the contenders take turns, batch by batch: other work on the machine
meets all of them alike.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LABELS = {
    "floor": "no durable state (floor)",
    "dstl": "spark-dstl",
    "dstl-snapshots": "spark-dstl, always snapshotting",
    "dstl-no-snapshots": "spark-dstl, no snapshots",
    "direct": "stock, direct write",
    "default": "stock, default",
}
ALL = ("floor", "dstl", "direct", "default")
SLOTS = 4
# Stores of a query in each partition: a join has two a side.
STORES = {"aggregation": 1, "windows": 1, "join": 4, "large": 1, "medium": 1, "wide": 1, "busy": 1, "accounts": 1}
FORMAT_VERSION = "spark.sql.streaming.stateStore.checkpointFormatVersion"
# Files that RocksDB keeps open for one store, newly written tables included, and that the process opens besides.
FILES_OF_STORE = 9
FILES_OF_PROCESS = 1000


def spec_of(case: DataclassInstance, **more: Any) -> dict[str, Any]:
    """Return the fields of a case, and others, by the JVM's names; it ignores those that it does not need."""
    return {re.sub(r"_(\w)", lambda found: found[1].upper(), name): of for name, of in {**asdict(case), **more}.items()}


@dataclass(frozen=True)
class Delays:
    """Times of requests to storage; see `RequestDelays` in jvm/bench."""

    median_ms: float = 40
    p99_ms: float = 250
    tail_ratio: float = 0.002
    tail_ms: float = 3000
    bytes_per_second: int = 100_000_000
    seed: int = 1
    # Of all requests of a process together; 0: any.
    network_bytes_per_second: int = 0

    def steady(self) -> Delays:
        """Let every request take the median: a difference of some milliseconds shows."""
        return replace(self, p99_ms=self.median_ms, tail_ratio=0)

    def none(self) -> Delays:
        """Let requests take no time."""
        return replace(self, median_ms=0, p99_ms=0, tail_ratio=0, bytes_per_second=0, network_bytes_per_second=0)

    def spec(self) -> dict[str, Any]:
        """Return what the JVM reads."""
        return spec_of(self)


@dataclass(frozen=True)
class Cell:
    """One process: `rounds` batches of each contender are measured, after `warmup` ones without delays."""

    group: str
    workload: str
    partitions: int
    rounds: int
    contenders: tuple[str, ...] = ALL
    mode: str = "turns"
    warmup: int = 10
    # Batches of a contender's turn.
    turn: int = 1
    interval_ms: int = 0
    # "slow": with all of `Delays`; "steady": every request takes the median; "counted": requests take no time;
    # "local": a disk.
    storage: Literal["slow", "steady", "counted", "local"] = "slow"
    # Of Spark's checkpoints: 2 gives each version of a store an id.
    format_version: int = 1
    # By round, for how many milliseconds storage does not answer.
    stalls: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Unique in a plan."""
        return f"{self.group}-{self.workload}-{self.partitions}-v{self.format_version}"

    @property
    def batches(self) -> int:
        """Return the number of rounds, warm-up included."""
        return self.warmup + self.rounds

    def within(self, open_files: int) -> Cell | None:
        """Leave out the last contenders if all together would open more files than that.

        `None` if no contender is left, or only one that was to be compared.
        """
        files_of_contender = self.partitions * STORES[self.workload] * FILES_OF_STORE
        fitting = self.contenders[: max(0, open_files - FILES_OF_PROCESS) // files_of_contender]
        return replace(self, contenders=fitting) if len(fitting) >= min(2, len(self.contenders)) else None

    def spec(self, root: str, delays: Delays, confs: dict[str, str], trace: bool) -> dict[str, Any]:
        """Return what the JVM reads."""
        of_storage = {"steady": delays.steady(), "counted": delays.none()}.get(self.storage, delays)
        return spec_of(
            self,
            benchmark="compare",
            root=root,
            delays=of_storage.spec() if self.storage != "local" else None,
            trace=trace,
            confs={FORMAT_VERSION: str(self.format_version), **confs},
        )


OURS = ("floor", "dstl")
AGAINST_STOCK = ("dstl", "direct")
SNAPSHOTS = ("dstl-snapshots", "dstl-no-snapshots")
# Groups that are measured with each checkpoint format.
EACH_FORMAT = ("floor", "compare", "bytes", "throughput")

FULL = [
    # Enough batches for a 99th percentile; without stock Spark, which takes most of the time.
    Cell("floor", "aggregation", 16, 110, contenders=OURS),
    Cell("floor", "windows", 16, 110, contenders=OURS),
    Cell("floor", "aggregation", 64, 110, contenders=OURS),
    Cell("floor", "windows", 64, 110, contenders=OURS),
    Cell("floor", "join", 16, 110, contenders=OURS),
    Cell("floor", "join", 64, 110, contenders=OURS),
    Cell("compare", "aggregation", 16, 200),
    Cell("compare", "aggregation", 64, 150),
    Cell("compare", "aggregation", 256, 30),
    Cell("compare", "windows", 16, 100),
    Cell("compare", "windows", 64, 100),
    Cell("compare", "windows", 256, 20),
    Cell("compare", "join", 16, 100),
    Cell("compare", "join", 64, 100),
    Cell("compare", "join", 256, 10),
    # The cost of partitions takes many batches to see: too many for all contenders.
    Cell("growth", "aggregation", 64, 300, contenders=OURS),
    Cell("growth", "aggregation", 256, 150, contenders=OURS),
    Cell("steady", "aggregation", 64, 120, contenders=OURS, storage="steady"),
    Cell("steady", "aggregation", 256, 90, contenders=OURS, storage="steady"),
    Cell("steady", "join", 64, 60, contenders=OURS, storage="steady"),
    Cell("steady", "join", 256, 40, contenders=OURS, storage="steady"),
    Cell("tail", "aggregation", 16, 2000, contenders=OURS),
    Cell("saturated", "aggregation", 16, 500, contenders=("dstl",), mode="endless"),
    Cell("idle", "aggregation", 16, 500, contenders=("dstl",), mode="paced", interval_ms=1500),
    Cell("large", "large", 64, 20, contenders=("floor", "dstl", "direct"), warmup=3),
    Cell("disk", "aggregation", 16, 300, contenders=("dstl", "default"), warmup=50, storage="local"),
    Cell("stall", "aggregation", 16, 12, contenders=("dstl",), stalls={"3": 5_000, "8": 30_000}),
    # Turns are long: a snapshot continues during the other contender's turn. The warm-up is long: the code of snapshots
    # runs less often than that of batches, and is compiled later.
    Cell("snapshots", "aggregation", 16, 600, contenders=SNAPSHOTS, turn=30, warmup=90),
    # Stored bytes, and speed on storage without delays, beside the best of stock Spark.
    Cell("bytes", "aggregation", 16, 30, contenders=AGAINST_STOCK, storage="counted"),
    Cell("bytes", "aggregation", 64, 30, contenders=AGAINST_STOCK, storage="counted"),
    Cell("bytes", "join", 64, 15, contenders=AGAINST_STOCK, storage="counted"),
    Cell("bytes", "large", 64, 8, contenders=AGAINST_STOCK, storage="counted", warmup=3),
    Cell("throughput", "busy", 16, 60, contenders=("dstl", "direct", "default"), storage="local", warmup=20),
    Cell("throughput", "large", 16, 20, contenders=("dstl", "direct", "default"), storage="local", warmup=5),
]

QUICK = [
    Cell("compare", "aggregation", 16, 15, warmup=8),
    Cell("compare", "aggregation", 64, 8, warmup=6),
    Cell("compare", "join", 64, 2, warmup=2),
]


def scaled(cells: list[Cell], factor: float) -> list[Cell]:
    """Multiply the number of rounds, to at least one; cells with stalls stay as they are."""
    return [cell if cell.stalls else replace(cell, rounds=max(1, round(cell.rounds * factor))) for cell in cells]


def with_formats(cells: list[Cell], versions: list[int]) -> list[Cell]:
    """Repeat cells for each checkpoint format version asked for; without any, those of `EACH_FORMAT` for both."""
    return [
        replace(cell, format_version=version)
        for cell in cells
        for version in (versions or ((1, 2) if cell.group in EACH_FORMAT else (1,)))
    ]
