# SPDX-License-Identifier: Apache-2.0
"""Measures the log's side of a driver alone: a generator makes the messages of tasks, and no Spark job runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plan import spec_of
from runner import Benchmark, Figures, Measurement, Report, Result

STORES_PER_TASK = 4
# Bytes of each store's changes: within the budget of a commit entry, and beyond.
SIZES = (100, 400, 4000)
# Tasks, for the question how many stores a driver can take.
GROWTH = (2_500, 10_000, 40_000)

Values = Mapping[str, Any]
Column = tuple[str, Callable[[Values], str]]


@dataclass(frozen=True)
class Load:
    """What the tasks of a batch hand to the driver."""

    tasks: int
    bytes_per_store: int
    format_version: int = 1
    batches: int = 600


@dataclass(frozen=True)
class Part:
    """One kind of measurement, with its loads, in a separate process."""

    name: str
    loads: tuple[Load, ...]


def parts(quick: bool) -> list[Part]:
    """List all parts; quick ones only show that everything works."""
    if quick:
        return [
            Part("direct", (Load(200, 100), Load(200, 40_000))),
            Part("endpoint", (Load(200, 100), Load(200, 40_000), Load(200, 100, format_version=2))),
            Part("memory", (Load(100, 100, batches=102),)),
            Part("snapshots", (Load(100, 100),)),
        ]
    sizes = tuple(Load(10_000, size) for size in SIZES)
    growth = tuple(Load(tasks, 100, format_version=version) for version in (1, 2) for tasks in GROWTH)
    return [
        Part("direct", sizes),
        Part("endpoint", tuple(dict.fromkeys(sizes + growth))),
        # 4 kB a store goes to data files, 100 B into the entry.
        Part("memory", (Load(10_000, 4000), Load(10_000, 100))),
        Part("snapshots", tuple(Load(tasks, 100) for tasks in GROWTH)),
    ]


def count(name: str) -> Callable[[Values], str]:
    return lambda figures: f"{figures[name]:,.0f}"


def megabytes(name: str) -> Callable[[Values], str]:
    """Show bytes in MB."""
    return lambda figures: f"{figures[name] / 1e6:,.1f}"


def times(name: str) -> Callable[[Values], str]:
    """Show the median, the 99th percentile and the maximum."""
    return lambda figures: " / ".join(f"{figures[name][of]:,.1f}" for of in ("p50", "p99", "max"))


SHAPE: tuple[Column, ...] = (
    ("tasks", count("tasks")),
    ("stores", count("stores")),
    ("bytes a store", count("bytesPerStore")),
    ("inline", lambda figures: f"{figures['inlineStoresPerTask']} of {STORES_PER_TASK}"),
    ("format", lambda figures: f"v{figures['formatVersion']}"),
)
COLUMNS: dict[str, tuple[Column, ...]] = {
    "direct": (*SHAPE, ("take", count("takeMs"))),
    "endpoint": (
        *SHAPE,
        ("take", count("takeMs")),
        ("CPU", count("cpuMs")),
        ("ask", times("ask")),
        ("commit", count("commitMs")),
        ("encode", count("encodeMs")),
        ("held, MB", megabytes("heldHeap")),
        ("ping, idle", times("idlePing")),
        ("ping", times("ping")),
    ),
    "memory": (
        *SHAPE,
        ("batches", count("batches")),
        ("before, MB", megabytes("before")),
        ("sealed, MB", megabytes("sealed")),
        ("committed, MB", megabytes("committed")),
    ),
    "snapshots": (
        *SHAPE,
        ("batches", count("batches")),
        ("named by one", count("namedByOne")),
        ("sent, MB", megabytes("carriedBytes")),
        ("take, first", count("firstTakeMs")),
        ("take, last", count("lastTakeMs")),
    ),
}
LEGENDS = {
    "direct": "One thread decodes, hands in and answers all messages of a batch, those of uploads included; in ms.",
    "endpoint": (
        "Another process on the same machine sends through Spark's RPC, 1,000 messages at a time. Take: from the "
        "first message until the last answer; CPU: of the driver's process meanwhile; ask: one message and its answer, "
        "and ping: an unrelated endpoint of the same driver asked every 10 ms, each p50 / p99 / max; times in ms. "
        "Changes that are not inline are reported in the barrier, as part of the commit, which ends when the entry is "
        "written, on storage without delays; encode: of that entry, all stores inline. Held: growth of the live heap."
    ),
    "memory": (
        "Growth of the live heap since the start of the run after so many batches, none of which is deleted. Sealed: "
        "the newest batch's seals are not yet committed; committed: all are."
    ),
    "snapshots": (
        "All stores finish a snapshot at once, and each seal carries the snapshots that the driver has not taken. "
        "Batches: until commit entries hold all; sent: bytes of snapshots in seals; take: of one thread, all seals of "
        "the first of these batches, and of the last; times in ms."
    ),
}


class Driver(Benchmark):
    """The driver's side of the log, part by part."""

    title = "The driver alone"
    command = "make bench-driver"
    # Of the sender's process as well.
    memory = "2g"

    def cases(self, options: argparse.Namespace) -> list[Part]:
        return parts(options.quick)

    def measure(self, case: Part, run: Measurement) -> None:
        """Measure all loads of a part in one process."""
        loads = [spec_of(load) for load in case.loads]
        run.process("", {"benchmark": "driver", "part": case.name, "loads": loads}, len(loads))

    def report(self, results: Sequence[Result]) -> Report:
        return Report([table(result) for result in results])


def table(result: Result) -> Figures:
    columns = COLUMNS[result.name]
    rows = [[show(values) for _, show in columns] for values in result.processes[0][1]]
    return Figures(result.name, [name for name, _ in columns], LEGENDS[result.name], rows)
