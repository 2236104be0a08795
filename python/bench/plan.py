# SPDX-License-Identifier: Apache-2.0
"""What `bench.py compare` measures: cells, each one workload on a number of partitions, run by some contenders in turn.

Every cell runs in a separate process. Within it the contenders take turns, batch by batch: other work on the machine
meets all of them alike.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LABELS = {
    "floor": "no durable state (floor)",
    "dstl": "spark-dstl",
    "dstl-serial": "spark-dstl, offsets before tasks",
    "dstl-below": "spark-dstl, Spark's provider",
    "dstl-inline": "spark-dstl, all changes inline",
    "dstl-uploaded": "spark-dstl, all changes uploaded",
    "dstl-snapshots": "spark-dstl, always snapshotting",
    "dstl-no-snapshots": "spark-dstl, no snapshots",
    "direct": "stock, direct write",
    "default": "stock, default",
}
ALL = ("floor", "dstl", "direct", "default")
SLOTS = 4
FORMAT_VERSION = "spark.sql.streaming.stateStore.checkpointFormatVersion"


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

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        for of in fields(cls):
            name, default = f"--{of.name.replace('_', '-')}", of.default
            parser.add_argument(name, type=type(default), default=default, help=f"of the storage's requests: {default}")

    @classmethod
    def of(cls, options: argparse.Namespace) -> Delays:
        return cls(**{of.name: getattr(options, of.name) for of in fields(cls)})

    def none(self) -> Delays:
        """Let requests take no time."""
        return replace(self, median_ms=0, p99_ms=0, tail_ratio=0, bytes_per_second=0, network_bytes_per_second=0)


@dataclass(frozen=True)
class Cell:
    """One process: `rounds` batches of each contender are measured, after `warmup` ones without delays."""

    group: str
    workload: str
    partitions: int
    rounds: int
    contenders: tuple[str, ...] = ALL
    warmup: int = 10
    # Batches of a contender's turn.
    turn: int = 1
    # "slow": with all of `Delays`; "counted": requests take no time; "local": a disk.
    storage: Literal["slow", "counted", "local"] = "slow"
    # Of Spark's checkpoints: 2 gives each version of a store an id.
    format_version: int = 1

    @property
    def name(self) -> str:
        """Unique in a plan."""
        return f"{self.group}-{self.workload}-{self.partitions}-v{self.format_version}"

    @property
    def batches(self) -> int:
        """Return the number of rounds, warm-up included."""
        return self.warmup + self.rounds

    def spec(self, root: str, delays: Delays) -> dict[str, Any]:
        """Return what the JVM reads."""
        of_storage = delays.none() if self.storage == "counted" else delays
        return spec_of(
            self,
            benchmark="compare",
            root=root,
            delays=spec_of(of_storage) if self.storage != "local" else None,
            confs={FORMAT_VERSION: str(self.format_version)},
        )


OURS = ("floor", "dstl")
AGAINST_STOCK = ("dstl", "direct")
OVERLAP = ("floor", "dstl", "dstl-serial", "direct")
INLINE = ("floor", "dstl", "dstl-inline", "dstl-uploaded")
SNAPSHOTS = ("dstl-snapshots", "dstl-no-snapshots")
# Groups that are measured with checkpoint format 1; all others with each format.
FIRST_FORMAT = ("overlap", "inline", "tail", "snapshots")

FULL = [
    # Enough batches for a 99th percentile; without stock Spark, which takes most of the time.
    *(
        Cell("floor", workload, partitions, 110, contenders=OURS)
        for workload in ("aggregation", "windows", "join")
        for partitions in (16, 64)
    ),
    Cell("compare", "aggregation", 16, 200),
    Cell("compare", "aggregation", 64, 150),
    Cell("compare", "windows", 16, 100),
    Cell("compare", "windows", 64, 100),
    Cell("compare", "join", 16, 100),
    Cell("compare", "join", 64, 100),
    # Jobs longer than a write, and one that is shorter.
    Cell("overlap", "aggregation", 16, 110, contenders=OVERLAP),
    Cell("overlap", "aggregation", 64, 110, contenders=OVERLAP),
    Cell("overlap", "join", 64, 110, contenders=OVERLAP),
    Cell("overlap", "aggregation", 1, 110, contenders=OVERLAP),
    # From which size on changes are faster in data files.
    *(Cell("inline", f"changes-{mib}", 16, 60, contenders=INLINE) for mib in (1, 4, 16, 64)),
    # Enough batches for a percentile of 99.9: some requests of every contender meet the tail of the delays.
    Cell("tail", "aggregation", 16, 2000, contenders=OURS),
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
    """Multiply the number of rounds, to at least one."""
    return [replace(cell, rounds=max(1, round(cell.rounds * factor))) for cell in cells]


def with_formats(cells: list[Cell], versions: list[int]) -> list[Cell]:
    """Repeat cells for each checkpoint format version asked for; without any, for those of the cell's group."""
    return [
        replace(cell, format_version=version)
        for cell in cells
        for version in (versions or ((1,) if cell.group in FIRST_FORMAT else (1, 2)))
    ]
