# SPDX-License-Identifier: Apache-2.0
"""Measures the recovery of a query, beside stock Spark: after a restart, and after the loss of an executor.

The checkpoint of each contender is made once, on storage without delays, with snapshots of a known version. In turn,
and from the same files each time, a new process continues from there on storage with delays: it runs one more batch; or
some batches, loses one of its two executor processes, and runs one more. A query without state is the baseline.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from charts import bar_chart
from compare import described
from plan import FORMAT_VERSION, LABELS, SLOTS, STORES, Delays
from runner import Benchmark, Figures, Lines, Measurement, Report, Result

OURS, STOCK = "dstl", ("direct", "default")
# The baseline: a query without state, with the settings of spark-dstl.
EMPTY = "empty"
CONTENDERS = (OURS, *STOCK, EMPTY)
# Bytes of state that a tick adds; see `Workload` in jvm/bench.
TICK_BYTES = {"wide": 40 * 16 * 1024}
# Two executor processes with as many task slots together as other measurements have, and 1 GiB each.
CLUSTER = f"local-cluster[2,{SLOTS // 2},1024]"


@dataclass(frozen=True)
class Case:
    """A query that recovers `since` batches after the newest snapshots, or `stock_since` with stock Spark.

    "restart" and "large-state" restart it in a separate process. "lost-executor" runs it in an application with
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
        """Return the contenders that are stock Spark."""
        return tuple(name for name in self.contenders if name in STOCK)

    @property
    def name(self) -> str:
        """Unique in a plan."""
        snapshots = "-as-configured" if self.as_configured else ""
        return f"{self.kind}-{self.workload}-{self.partitions}-after-{self.since}{snapshots}-v{self.format_version}"

    @property
    def stores(self) -> int:
        """Return the number of stores of all partitions."""
        return self.partitions * STORES[self.workload]

    @property
    def state_bytes(self) -> int:
        """Return the bytes of the rows of a large state; 0 for others."""
        return self.before * self.ticks * TICK_BYTES.get(self.workload, 0)

    @property
    def network_seconds(self) -> float:
        """Return the time that the network needs for these bytes; 0 without a limit."""
        return self.state_bytes / self.network if self.network else 0

    @property
    def measured_phase(self) -> str:
        """Return the name of the measured phase."""
        return "lose" if self.kind == "lost-executor" else "recover"

    def master(self, phase: str) -> str | None:
        """Return the Spark master of a phase; `None` for the default."""
        return CLUSTER if phase == "lose" else None

    def batches(self, contender: str) -> tuple[int, int]:
        """Return the batches before and after the newest snapshots; their sum is the same for every contender."""
        all_ = self.before + self.since
        since = self.stock_since if contender in STOCK and self.stock_since >= 0 else self.since
        return (0, 0) if contender == EMPTY else (all_ - since, since)

    def spec(self, contender: str, phase: str, root: Path, confs: Mapping[str, str]) -> dict[str, Any]:
        """Return what the JVM reads."""
        before, since = self.batches(contender)
        # The baseline of a loss has no stores: opening stores elsewhere is part of recovery.
        workload = "stateless" if contender == EMPTY and self.kind == "lost-executor" else self.workload
        return {
            "benchmark": "recovery",
            "phase": phase,
            "workload": workload,
            "partitions": self.partitions,
            "contender": OURS if contender == EMPTY else contender,
            "root": str(root),
            "delays": replace(Delays(), network_bytes_per_second=self.network).spec(),
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

NAMES = {**LABELS, EMPTY: "spark-dstl, no state yet"}
STATELESS = "no stores"
HEADER = (
    "measurement",
    "stores",
    "state",
    "since snapshot",
    "p50",
    "min",
    "max",
    "usual",
    "reads",
    "MB read",
    "existence checks",
    "listings",
)
LEGEND = (
    "restart, large-state: first batch of a query that is restarted in a separate process, in ms from the start of "
    "the query to the end of the batch. lost-executor: batch of a running query that has lost one of two executor "
    "processes, from its input to its end; usual: median of the batches before. p50, min and max are of the "
    "repetitions. Since snapshot: batches between the newest snapshots and that batch. Requests: of all processes, in "
    "start and batch together, median of the repetitions."
)


@dataclass
class Recoveries:
    """Times and requests of one contender's recoveries."""

    millis: list[int] = field(default_factory=list)
    # Medians of the batches before the loss of an executor.
    usual: list[float] = field(default_factory=list)
    requests: list[dict[str, int]] = field(default_factory=list)
    bytes_read: list[int] = field(default_factory=list)

    def add(self, lines: Lines) -> None:
        """Add what one process has written."""
        asked: dict[str, int] = {}
        bytes_read = 0
        for line in lines:
            if line["kind"] == "recovery":
                self.millis.append(line["millis"])
                if line["usual"]:
                    self.usual.append(statistics.median(line["usual"]))
            else:
                asked[line["request"]] = asked.get(line["request"], 0) + line["count"]
                bytes_read += line["bytes"] if line["request"] == "GET" else 0
        self.requests.append(asked)
        self.bytes_read.append(bytes_read)

    def asked(self, request: str) -> float:
        """Return the median number of such requests."""
        return statistics.median(asked.get(request, 0) for asked in self.requests)


@dataclass
class Recovered:
    """One case's outcome."""

    case: Case
    contenders: dict[str, Recoveries] = field(init=False)

    def __post_init__(self) -> None:
        """Begin without recoveries."""
        self.contenders = {name: Recoveries() for name in self.case.contenders}

    @staticmethod
    def of(result: Result) -> Recovered:
        """Read what the processes of a case wrote; a recovery that failed has no line."""
        recovered = Recovered(Case(**result.case))
        for name, lines in result.processes:
            if any(line["kind"] == "recovery" for line in lines):
                recovered.contenders[name].add(lines)
        return recovered

    @property
    def can_be_compared(self) -> bool:
        """Return whether every contender has recovered once."""
        return all(of.millis for of in self.contenders.values())

    def label(self, contender: str) -> str:
        """Return a contender's name in tables."""
        return STATELESS if contender == EMPTY and self.case.kind == "lost-executor" else NAMES[contender]

    def median(self, contender: str) -> float:
        """Return the median time of the batch, in milliseconds."""
        return statistics.median(self.contenders[contender].millis)

    def over_empty(self, contender: str) -> float:
        """Subtract the baseline: what the state costs, in milliseconds."""
        return self.median(contender) - self.median(EMPTY)

    def rows(self) -> list[list[str]]:
        """Make the table's rows."""
        return [
            [
                self.case.name,
                str(self.case.stores),
                self.label(name),
                "-" if name == EMPTY else str(self.case.batches(name)[1]),
                *(f"{value:,.0f}" for value in (self.median(name), min(of.millis), max(of.millis))),
                f"{statistics.median(of.usual):,.0f}" if of.usual else "-",
                f"{of.asked('GET'):g}",
                f"{statistics.median(of.bytes_read) / 1e6:,.1f}",
                *(f"{of.asked(request):g}" for request in ("HEAD", "LIST")),
            ]
            for name, of in self.contenders.items()
        ]

    def ratios(self) -> list[str]:
        """Compare with stock, with a query that has no state, and with what the network allows."""
        name, ours = self.case.name, self.median(OURS)
        lines = [f"{name}: {ours / self.median(other):.2f} times {self.label(other)}" for other in self.case.stock]
        lines.append(f"{name}: {self.over_empty(OURS):+,.0f} ms over {self.label(EMPTY)}")
        for of in self.case.contenders:
            usual = self.contenders[of].usual
            if usual:
                loss = self.median(of) - statistics.median(usual)
                lines.append(f"{name}: with {self.label(of)} {loss:+,.0f} ms over its usual batch")
        seconds = self.case.network_seconds
        if seconds:
            network = (
                f"the {seconds:.1f} s that its {self.case.state_bytes / 1e9:.2f} GB take "
                f"at {self.case.network / 1e6:g} MB/s"
            )
            for of in (OURS, *self.case.stock):
                times = self.over_empty(of) / 1000 / seconds
                lines.append(f"{name}: with {self.label(of)} the state costs {times:.2f} times {network}")
        return lines


class Recovery(Benchmark):
    """Restarts and losses, each contender in turn."""

    title = "Recovery"
    command = "make bench-recovery"

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the cases."""
        parser.add_argument("--repetitions", type=int, help="recoveries of each contender")
        parser.add_argument("--network", type=int, help="bytes per second of a process, for large-state")

    def cases(self, options: argparse.Namespace) -> list[Case]:
        """Return the cases, with the options applied."""
        return [
            replace(
                case,
                repetitions=options.repetitions or case.repetitions,
                network=options.network or case.network if case.network else 0,
            )
            for case in (QUICK if options.quick else FULL)
        ]

    def measure(self, case: Case, run: Measurement) -> None:
        """Make each contender's checkpoint, and continue from it in turn."""
        root, prepared = run.directory / "checkpoints", run.directory / "prepared"
        prepared.mkdir()
        run.result.storage = described(Delays())

        def process(name: str, phase: str) -> None:
            spec = case.spec(name, phase, root, dict(run.options.conf))
            run.process(name, spec, master=case.master(phase), keep=phase != "prepare")

        for name in (OURS, *case.stock):
            process(name, "prepare")
            (root / name).rename(prepared / name)
        for repetition in range(case.repetitions):
            first = repetition % len(case.contenders)
            for name in case.contenders[first:] + case.contenders[:first]:
                shutil.rmtree(root, ignore_errors=True)
                if name != EMPTY:
                    # Hard links: the delayed file system changes no file in place.
                    shutil.copytree(prepared / name, root / name, copy_function=os.link)
                # The disk is idle when the measurement begins.
                os.sync()
                process(name, case.measured_phase)

    def report(self, results: Sequence[Result]) -> Report:
        """Make the table, comparisons and a chart of the cases in which every contender has recovered."""
        found = [one for one in map(Recovered.of, results) if one.can_be_compared]
        tables = [Figures("First batch", HEADER, LEGEND, [one.rows() for one in found])]
        groups = {
            one.case.name: {
                name: (one.median(name) / 1000, min(of.millis) / 1000, max(of.millis) / 1000)
                for name, of in one.contenders.items()
            }
            for one in found
        }
        charts = {"recovery.png": bar_chart(groups, NAMES, "first batch, s")} if groups else {}
        return Report(tables, [line for one in found for line in one.ratios()], charts)
