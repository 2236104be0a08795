# SPDX-License-Identifier: Apache-2.0
"""Compares ways to keep the state of a streaming query, batch by batch in turn, on storage with delays."""

from __future__ import annotations

import argparse
import math
import os
import random
import resource
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from charts import Panel, line_chart
from matplotlib.figure import Figure
from plan import FULL, LABELS, QUICK, SLOTS, SNAPSHOTS, Cell, Delays, scaled, with_formats
from runner import Benchmark, Figures, Lines, Measurement, Report, Result

FLOOR = "floor"
PERCENTILES = (50, 99, 99.9)
RESAMPLINGS = 1000
# All contenders take snapshots in the background, by the same rules.
BACKGROUND = ("snapshot",)
# Requests by the columns of the table.
WRITES, QUESTIONS, LISTINGS = ("PUT",), ("HEAD",), ("LIST",)
OTHERS = ("GET", "COPY", "DELETE")
# Objects that hold a batch's state changes and its commit.
STATE_FILES = ("changelog", "data file", "commits")
HEADER = (
    *("measurement", "partitions", "format", "state", "batches"),
    *(f"p{percent:g}" for percent in PERCENTILES),
    *("p50 over, 95 %", "max", "commit p50", "commit p99"),
    *("writes", "existence checks", "listings", "others", "all", "bytes", "CPU", "MB"),
)
LEGEND = (
    "Times are in ms, of whole batches and of their commits; in brackets the difference to the same percentile of the "
    "floor, and in a separate column the limits of the median's difference in 95 of 100 resamplings. Requests are "
    "those made while a batch ran, median over batches, without snapshots: objects written, existence checks, "
    "listings, and reads, copies and deletions; all: their average with hedges and background work. Bytes: written "
    "for state changes and commit entry in a median batch. CPU: ms of all tasks of a batch. MB: the most bytes that "
    "the log held in memory. Format: version of Spark's checkpoints. In `steady` cases every request takes the median."
)

# By request and kind of file: requests and bytes.
Requests = dict[tuple[str, str], tuple[int, int]]


@dataclass
class Contender:
    """What one contender did in one cell. A commit is the barrier, if there is one, and the commit entry's write."""

    batch_ms: list[float] = field(default_factory=list)
    commit_ms: list[float] = field(default_factory=list)
    # By (request, kind of file), over all counted batches.
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Of each batch, while it ran.
    batch_requests: list[Requests] = field(default_factory=list)
    # Of the newest batch whose requests were traced.
    paths: list[str] = field(default_factory=list)
    task_cpu_ms: float = 0
    # The most bytes that the log held in memory.
    peak_in_flight: int = 0

    def add(self, line: Mapping[str, Any]) -> None:
        """Take in a line that a process has written."""
        if line["kind"] == "batch":
            self.batch_ms.append(line["durations"]["triggerExecution"])
            self.commit_ms.append(line["durations"].get("commitOffsets", 0))
            asked = {(of["request"], of["file"]): (of["count"], of["bytes"]) for of in line["requests"]}
            self.batch_requests.append(asked)
            self.paths = line.get("paths", [])
        elif line["kind"] == "requests":
            self.requests[line["request"], line["file"]] += line["count"]
        elif line["kind"] == "cpu":
            self.task_cpu_ms = line["taskNanos"] / 1e6
        elif line["kind"] == "memory":
            self.peak_in_flight = line["bytes"]

    def percentile(self, percent: float) -> float | None:
        """Return a percentile of the batch time, in milliseconds."""
        return percentile(self.batch_ms, percent)

    def asked(self, wanted: Sequence[str]) -> float | None:
        """Return the median, over batches, of such requests made while a batch ran, without snapshots."""
        counts = [
            sum(count for (request, file), (count, _) in batch.items() if request in wanted and file not in BACKGROUND)
            for batch in self.batch_requests
        ]
        return statistics.median(counts) if any(self.batch_requests) else None

    def all_requests(self) -> float:
        """Average all requests of a batch, hedges and background work included, without snapshots."""
        counted = sum(count for (_, file), count in self.requests.items() if file not in BACKGROUND)
        return counted / max(1, len(self.batch_ms))

    def stored_bytes(self) -> float | None:
        """Return the median, over batches, of the bytes of state changes and commit entries written."""
        stored = [
            sum(bytes_ for (request, file), (_, bytes_) in batch.items() if request == "PUT" and file in STATE_FILES)
            for batch in self.batch_requests
        ]
        return statistics.median(stored) if any(stored) else None


@dataclass
class Measured:
    """One cell's outcome."""

    cell: Cell
    contenders: dict[str, Contender]

    @staticmethod
    def of(cell: Cell, lines: Lines) -> Measured:
        """Read the lines of the cell's process. A cell that failed has the contenders that have batches."""
        contenders: dict[str, Contender] = {}
        for line in lines:
            if line["contender"]:
                contenders.setdefault(line["contender"], Contender()).add(line)
        return Measured(cell, {name: contenders[name] for name in LABELS if name in contenders})

    def over_floor(self, contender: str, percent: float) -> float | None:
        """Subtract the floor's percentile of the batch time from the contender's; in milliseconds."""
        floor = self.contenders.get(FLOOR)
        own = self.contenders[contender].percentile(percent)
        base = floor.percentile(percent) if floor else None
        return None if own is None or base is None else own - base

    def over_floor_interval(self, contender: str, percent: float) -> tuple[float, float] | None:
        """Return the limits of `over_floor` in 95 of 100 resamplings of the rounds; in milliseconds."""
        if self.over_floor(contender, percent) is None:
            return None
        return self._resampled(
            contender, FLOOR, lambda own, base: (percentile(own, percent) or 0.0) - (percentile(base, percent) or 0.0)
        )[1:]

    def throughput_ratio(self, contender: str, other: str) -> tuple[float, float, float]:
        """Divide the contender's rows a second by the other's, from median batch times; with limits."""
        median = statistics.median
        return self._resampled(contender, other, lambda own, others: float(median(others) / median(own)))

    def p99_ratio(self, contender: str, other: str) -> tuple[float, float, float] | None:
        """Divide 99th percentiles of batch times; with limits. `None` if there are too few batches."""
        if any(self.contenders[name].percentile(99) is None for name in (contender, other)):
            return None
        return self._resampled(
            contender, other, lambda own, others: (percentile(own, 99) or 0.0) / (percentile(others, 99) or 1.0)
        )

    def _resampled(
        self, contender: str, other: str, compare: Callable[[Sequence[float], Sequence[float]], float]
    ) -> tuple[float, float, float]:
        """Compare batch times, with the limits of 95 in 100 resamplings: the bootstrap (Efron 1979).

        Rounds are drawn, not batches: other work on the machine meets all contenders of a round.
        """
        times = (self.contenders[name].batch_ms for name in (contender, other))
        rounds = list(zip(*times, strict=False))
        chance = random.Random(0)

        def of(drawn: Sequence[tuple[float, ...]]) -> float:
            own, others = zip(*drawn, strict=True)
            return compare(own, others)

        found = sorted(of(chance.choices(rounds, k=len(rounds))) for _ in range(RESAMPLINGS))
        return of(rounds), found[int(RESAMPLINGS * 0.025)], found[int(RESAMPLINGS * 0.975) - 1]

    def rows(self) -> list[list[str]]:
        """Make a row for each contender."""
        return [
            [
                f"{self.cell.group}: {self.cell.workload}",
                str(self.cell.partitions),
                f"v{self.cell.format_version}",
                LABELS[name],
                str(len(contender.batch_ms)),
                *(self._figure(name, percent) for percent in PERCENTILES),
                self._interval(name),
                f"{max(contender.batch_ms):,.0f}",
                *(number(percentile(contender.commit_ms, percent)) for percent in (50, 99)),
                *(number(contender.asked(kind)) for kind in (WRITES, QUESTIONS, LISTINGS, OTHERS)),
                f"{contender.all_requests():.2f}",
                number(contender.stored_bytes()),
                number(contender.task_cpu_ms / len(contender.batch_ms)),
                f"{contender.peak_in_flight / 1e6:.0f}",
            ]
            for name, contender in self.contenders.items()
            if contender.batch_ms
        ]

    def remarks(self) -> list[str]:
        """Compare with stock Spark what is stored and how fast batches are; compare snapshots with their absence."""
        name = self.cell.name
        others = [other for other in ("direct", "default") if other in self.contenders and "dstl" in self.contenders]
        lines = [f"{name} {of}: {path}" for of, contender in self.contenders.items() for path in contender.paths]
        if self.cell.group == "bytes":
            for other in others:
                own, stored = (self.contenders[of].stored_bytes() for of in ("dstl", other))
                if own and stored:
                    lines.append(
                        f"{name}: {own / stored:.3f} times the bytes of {LABELS[other]} ({own:,.0f}, {stored:,.0f})"
                    )
        elif self.cell.group == "throughput":
            for other in others:
                ratio, low, high = self.throughput_ratio("dstl", other)
                lines.append(
                    f"{name}: {ratio:.3f} times the rows a second of {LABELS[other]} ({low:.3f} to {high:.3f})"
                )
        elif self.cell.group == "snapshots" and set(SNAPSHOTS) <= set(self.contenders):
            found = self.p99_ratio(*SNAPSHOTS)
            times = (
                "too few batches for a p99" if found is None else "p99 {:.2f} times ({:.2f} to {:.2f})".format(*found)
            )
            of = {key: self.contenders[key] for key in SNAPSHOTS}
            files = {key: one.requests["PUT", "data file"] / len(one.batch_ms) for key, one in of.items()}
            written = ", ".join(f"{key}: {value:.1f}" for key, value in files.items())
            lines.append(f"{name}: {times} that of {LABELS[SNAPSHOTS[1]]}; data files written a batch: {written}")
        return lines

    def panel(self) -> Panel:
        """Draw the distribution of batch times."""
        return Panel(
            f"share of batches: {self.cell.workload}, {self.cell.partitions} partitions",
            "time of a batch, s",
            {
                name: [(time / 1000, (rank + 1) / len(of.batch_ms)) for rank, time in enumerate(sorted(of.batch_ms))]
                for name, of in self.contenders.items()
            },
            is_log=True,
        )

    def _figure(self, name: str, percent: float) -> str:
        """Show a percentile and its difference to the floor's, if there are batches enough."""
        value, over = number(self.contenders[name].percentile(percent)), self.over_floor(name, percent)
        return value if over is None or name == FLOOR else f"{value} ({over:+,.0f})"

    def _interval(self, name: str) -> str:
        limits = None if name == FLOOR else self.over_floor_interval(name, 50)
        return "" if limits is None else f"{limits[0]:+,.0f} to {limits[1]:+,.0f}"


class Compare(Benchmark):
    """Spark's RocksDB state store with two file managers, spark-dstl, and a floor without durable state."""

    title = "Comparison with stock Spark"
    command = "make bench"

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the plan and of the storage's delays."""
        parser.add_argument("--scale", type=float, default=1.0, help="multiply the number of rounds by this")
        parser.add_argument(
            "--format-version",
            action="append",
            type=int,
            choices=(1, 2),
            help="of Spark's checkpoints; given twice, both are measured (without it, both where the plan has both)",
        )
        parser.add_argument("--trace", action="store_true", help="print the paths of the last batch's requests")
        default = Delays()
        parser.add_argument("--median-ms", type=float, default=default.median_ms, help="median request, in ms")
        parser.add_argument("--p99-ms", type=float, default=default.p99_ms, help="99th percentile of requests, in ms")
        parser.add_argument("--tail-ratio", type=float, default=default.tail_ratio, help="share of very slow requests")
        parser.add_argument("--tail-ms", type=float, default=default.tail_ms, help="their additional delay, in ms")
        parser.add_argument(
            "--bytes-per-second", type=int, default=default.bytes_per_second, help="of one request; 0: no limit"
        )
        parser.add_argument("--seed", type=int, default=default.seed, help="of the delays")

    def cases(self, options: argparse.Namespace) -> list[Cell]:
        """Return the cells, with the options applied."""
        versions = options.format_version or ([1] if options.quick else [])
        return with_formats(scaled(QUICK if options.quick else FULL, options.scale), versions)

    def measure(self, case: Cell, run: Measurement) -> None:
        """Measure a cell in one process, without the contenders whose files cannot all be open."""
        # Java raises its soft limit to the hard one.
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        cell = case if limit == resource.RLIM_INFINITY else case.within(limit)
        left_out = case.contenders[len(cell.contenders) if cell else 0 :]
        if left_out:
            print(f"{case.name}: left out {', '.join(left_out)}: a process may open {limit} files here (`ulimit -Hn`)")
        if cell:
            delays = delays_of(run.options)
            run.result.storage = described(delays)
            root = str(run.directory / "checkpoints")
            run.process("", cell.spec(root, delays, dict(run.options.conf), run.options.trace), cell.batches)

    def report(self, results: Sequence[Result]) -> Report:
        """Make the table, ratios and the distributions of batch times."""
        cells = [Measured.of(Cell(**result.case), result.processes[0][1]) for result in results]
        cells = [cell for cell in cells if any(of.batch_ms for of in cell.contenders.values())]
        tables = [Figures("Batches", HEADER, LEGEND, [cell.rows() for cell in cells])]
        return Report(tables, [line for cell in cells for line in cell.remarks()], charts(cells))


def charts(cells: Sequence[Measured]) -> dict[str, Figure]:
    """Draw one plot a workload, preferably with 64 partitions and the newest checkpoint format."""
    compared = [cell for cell in cells if cell.cell.group == "compare"]
    compared.sort(key=lambda one: (one.cell.format_version, one.cell.partitions == 64))
    chosen = {one.cell.workload: one for one in compared}
    return {"batch-times.png": line_chart([one.panel() for one in chosen.values()], LABELS)} if chosen else {}


def delays_of(options: argparse.Namespace) -> Delays:
    """Return the delays that the options describe."""
    return Delays(
        options.median_ms,
        options.p99_ms,
        options.tail_ratio,
        options.tail_ms,
        options.bytes_per_second,
        options.seed,
    )


def described(delays: Delays) -> str:
    """Describe the storage in a sentence."""
    return (
        f"Storage: a request takes {delays.median_ms:g} ms in the median, {delays.p99_ms:g} ms at the 99th percentile, "
        f"{delays.tail_ratio:.1%} of all {delays.tail_ms:g} ms longer, and content is transferred at "
        f"{delays.bytes_per_second / 1e6:g} MB/s a request; seed {delays.seed}. "
        f"{SLOTS} task slots on {os.cpu_count()} processors."
    )


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return the nearest rank; `None` if there are so few values that it would be the largest anyway."""
    rank = math.ceil(round(len(values) * percent / 100, 6))
    return sorted(values)[rank - 1] if rank < len(values) else None


def number(value: float | None) -> str:
    """Show a number without decimals, or that there is none."""
    return "-" if value is None else f"{value:,.0f}"
