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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from charts import bar_chart
from compare import described
from plan import FORMAT_VERSION, LABELS, SLOTS, Delays, spec_of
from runner import Benchmark, Figures, Lines, Measurement, Report, Result

OURS, STOCK = "dstl", ("direct", "default")
# The baselines: a query without state, with the settings of spark-dstl, and with stock Spark's.
EMPTY, EMPTY_STOCK = "empty", "empty-default"
AS_CONTENDER = {EMPTY: OURS, EMPTY_STOCK: "default"}
CONTENDERS = (OURS, *STOCK, EMPTY)
# Stores of a query in each partition: a join has two a side.
STORES = {"join": 4}
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
    # Whether the session of a restart has restarted a copy before: else it has done nothing.
    warm_session: bool = False
    format_version: int = 1
    # Whether the log takes snapshots by its defaults in the batches since; else it takes none.
    as_configured: bool = False
    # Bytes that all requests of a process together move in a second; 0: any number.
    network: int = 0
    contenders: tuple[str, ...] = CONTENDERS

    @property
    def name(self) -> str:
        """Unique in a plan."""
        snapshots = "-as-configured" if self.as_configured else ""
        session = "-warm" if self.warm_session else ""
        query = f"{self.workload}-{self.partitions}-after-{self.since}"
        return f"{self.kind}-{query}{snapshots}{session}-v{self.format_version}"

    @property
    def stores(self) -> int:
        """Return the number of stores of all partitions."""
        return self.partitions * STORES.get(self.workload, 1)

    @property
    def state_bytes(self) -> int:
        """Return the bytes of the rows of a large state; 0 for others."""
        return self.before * self.ticks * TICK_BYTES.get(self.workload, 0)

    def batches(self, contender: str) -> tuple[int, int]:
        """Return the batches before and after the newest snapshots; their sum is the same for every contender."""
        all_ = self.before + self.since
        since = self.stock_since if contender in STOCK and self.stock_since >= 0 else self.since
        return (0, 0) if contender in AS_CONTENDER else (all_ - since, since)

    def spec(self, contender: str, phase: str, root: Path, delays: Delays) -> dict[str, Any]:
        """Return what the JVM reads."""
        before, since = self.batches(contender)
        # The baseline of a loss has no stores: opening stores elsewhere is part of recovery.
        is_stateless = contender == EMPTY and self.kind == "lost-executor"
        return spec_of(
            self,
            benchmark="recovery",
            phase=phase,
            workload="stateless" if is_stateless else self.workload,
            contender=AS_CONTENDER.get(contender, contender),
            root=str(root),
            delays=spec_of(replace(delays, network_bytes_per_second=self.network or delays.network_bytes_per_second)),
            stores=self.stores,
            batches_before=before,
            ticks_before=self.ticks,
            batches_since=max(0, since - self.warm),
            batches_warm=self.warm,
            warm_session=self.warm_session,
            confs={FORMAT_VERSION: str(self.format_version)},
        )


WITH_BOTH = (*CONTENDERS, EMPTY_STOCK)
FULL = [
    Case("restart", "aggregation", 64, since=10, contenders=WITH_BOTH),
    Case("restart", "aggregation", 64, since=10, warm_session=True, contenders=WITH_BOTH),
    Case("restart", "join", 64, since=10),
    # Stock Spark takes a snapshot every ten versions: here at its best.
    Case("restart", "accounts", 16, since=600, stock_since=0, ticks=6),
    Case("restart", "accounts", 16, since=600, stock_since=0, ticks=6, as_configured=True),
    Case("restart", "accounts", 16, since=6000, stock_since=0, ticks=6, as_configured=True, repetitions=2),
    Case("lost-executor", "aggregation", 64, since=10, warm=6),
    Case("lost-executor", "join", 64, since=10, warm=6),
    # 5 GB.
    Case("large-state", "wide", 16, since=10, repetitions=3, before=12, ticks=640, network=200_000_000),
]
SOME = (OURS, "direct", EMPTY)
QUICK = [
    Case("restart", "aggregation", 8, since=5, repetitions=1, before=3),
    Case("restart", "aggregation", 8, since=5, repetitions=1, before=3, warm_session=True),
    Case("lost-executor", "aggregation", 8, since=8, repetitions=1, before=3, warm=3, contenders=SOME),
    Case("large-state", "wide", 4, since=5, repetitions=1, before=3, ticks=50, network=200_000_000, contenders=SOME),
]

NAMES = {**LABELS, EMPTY: "spark-dstl, no state yet", EMPTY_STOCK: "stock, no state yet"}
STATELESS = "no stores"
HEADER = (
    "measurement",
    "stores",
    "state",
    "since snapshot",
    "serial requests",
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
    "the query to the end of the batch; warm: in a process that has just restarted a copy of the query. lost-executor: "
    "batch of a running query that has lost one of two executor processes, from its input to its end; usual: median "
    "of the batches before. p50, min and max are of the repetitions. Since snapshot: batches between the newest "
    "snapshots and that batch. Serial requests: those that followed one another before the first task of the restarted "
    "query. Requests: of all processes, in start and batch together, median of the repetitions."
)


@dataclass(frozen=True)
class Recoveries:
    """Times and requests of one contender's recoveries: the lines of each process."""

    case: Case
    name: str
    processes: list[Lines]

    @property
    def label(self) -> str:
        return STATELESS if self.name == EMPTY and self.case.kind == "lost-executor" else NAMES[self.name]

    @property
    def millis(self) -> list[int]:
        return [line["millis"] for lines in self.processes for line in lines if line["kind"] == "recovery"]

    @property
    def median(self) -> float:
        """Return the median time of the batch, in milliseconds."""
        return statistics.median(self.millis)

    @property
    def usual(self) -> float | None:
        """Return the median of the batches before the loss of an executor."""
        batches = [line["usual"] for lines in self.processes for line in lines if line.get("usual")]
        return statistics.median(map(statistics.median, batches)) if batches else None

    @property
    def serial(self) -> float | None:
        """Return the median number of requests that followed one another before the first task."""
        numbers = [len(line["serial"]) for lines in self.processes for line in lines if line.get("serial") is not None]
        return statistics.median(numbers) if numbers else None

    def asked(self, request: str, what: str = "count") -> float:
        """Return the median number of such requests, or of their bytes."""
        counts: list[int] = [
            sum(line[what] for line in lines if line.get("request") == request) for lines in self.processes
        ]
        return statistics.median(counts)

    def row(self) -> list[str]:
        return [
            self.case.name,
            str(self.case.stores),
            self.label,
            "-" if self.name in AS_CONTENDER else str(self.case.batches(self.name)[1]),
            f"{self.serial:g}" if self.serial is not None else "-",
            *(f"{value:,.0f}" for value in (self.median, min(self.millis), max(self.millis))),
            f"{self.usual:,.0f}" if self.usual else "-",
            f"{self.asked('GET'):g}",
            f"{self.asked('GET', 'bytes') / 1e6:,.1f}",
            *(f"{self.asked(request):g}" for request in ("HEAD", "LIST")),
        ]


def recovered(result: Result) -> dict[str, Recoveries]:
    """Read what the processes of a case wrote; nothing unless every contender has recovered once."""
    case = Case(**result.case)
    found = {
        name: Recoveries(
            case,
            name,
            [
                lines
                for of, lines in result.processes
                if of == name and any(line["kind"] == "recovery" for line in lines)
            ],
        )
        for name in case.contenders
    }
    return found if all(of.processes for of in found.values()) else {}


def remarks(contenders: dict[str, Recoveries]) -> list[str]:
    """Compare with stock, with a query that has no state, and with what the network allows."""
    ours, empty, case = contenders[OURS], contenders[EMPTY], contenders[OURS].case
    stock = [contenders[name] for name in STOCK if name in contenders]
    lines = [f"{ours.median / other.median:.2f} times {other.label}" for other in stock]
    without_state = [contenders[name] for name in AS_CONTENDER if name in contenders]
    lines += [f"{ours.median - of.median:+,.0f} ms over {of.label}" for of in without_state]
    lines += [
        f"with {of.label} {of.median - of.usual:+,.0f} ms over its usual batch"
        for of in contenders.values()
        if of.usual is not None
    ]
    if case.network:
        seconds = case.state_bytes / case.network
        network = f"the {seconds:.1f} s that its {case.state_bytes / 1e9:.2f} GB take at {case.network / 1e6:g} MB/s"
        for of in (ours, *stock):
            times = (of.median - empty.median) / 1000 / seconds
            lines.append(f"with {of.label} the state costs {times:.2f} times {network}")
    return [f"{case.name}: {line}" for line in lines]


class Recovery(Benchmark):
    """Restarts and losses, each contender in turn."""

    title = "Recovery"
    command = "make bench-recovery"

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the cases and of the storage's delays."""
        parser.add_argument("--repetitions", type=int, help="recoveries of each contender")
        parser.add_argument(
            "--contenders", nargs="+", choices=WITH_BOTH, default=WITH_BOTH, help="only these, beside dstl and empty"
        )
        Delays.options(parser)

    def cases(self, options: argparse.Namespace) -> list[Case]:
        wanted = {OURS, EMPTY, *options.contenders}
        return [
            replace(
                case,
                repetitions=options.repetitions or case.repetitions,
                contenders=tuple(name for name in case.contenders if name in wanted),
            )
            for case in (QUICK if options.quick else FULL)
        ]

    def measure(self, case: Case, run: Measurement) -> None:
        """Make each contender's checkpoint, and continue from it in turn."""
        root, prepared = run.directory / "checkpoints", run.directory / "prepared"
        prepared.mkdir()
        delays = Delays.of(run.options)
        run.result.storage = described(delays)

        def process(name: str, phase: str) -> None:
            master = CLUSTER if phase == "lose" else None
            run.process(name, case.spec(name, phase, root, delays), master=master, keep=phase != "prepare")

        for name in case.contenders:
            if name in AS_CONTENDER:
                continue
            process(name, "prepare")
            (root / name).rename(prepared / name)
        for repetition in range(case.repetitions):
            first = repetition % len(case.contenders)
            for name in case.contenders[first:] + case.contenders[:first]:
                shutil.rmtree(root, ignore_errors=True)
                if name not in AS_CONTENDER:
                    # Hard links: the delayed file system changes no file in place.
                    for copy in (name, *([f"{name}-copy"] if case.warm_session else [])):
                        shutil.copytree(prepared / name, root / copy, copy_function=os.link)
                # The disk is idle when the measurement begins.
                os.sync()
                process(name, "lose" if case.kind == "lost-executor" else "recover")

    def report(self, results: Sequence[Result]) -> Report:
        """Make the table, comparisons and a chart of the cases in which every contender has recovered."""
        found = [one for one in map(recovered, results) if one]
        tables = [Figures("First batch", HEADER, LEGEND, [of.row() for one in found for of in one.values()])]
        groups = {
            one[OURS].case.name: {
                name: (of.median / 1000, min(of.millis) / 1000, max(of.millis) / 1000) for name, of in one.items()
            }
            for one in found
        }
        charts = {"recovery.png": bar_chart(groups, NAMES, "first batch, s")} if groups else {}
        return Report(tables, [line for one in found for line in remarks(one)], charts)
