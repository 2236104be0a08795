# SPDX-License-Identifier: Apache-2.0
"""Compares ways to keep the state of a streaming query, batch by batch in turn, on storage with delays."""

from __future__ import annotations

import argparse
import os
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from charts import Panel, line_chart
from plan import FULL, LABELS, QUICK, SLOTS, SNAPSHOTS, Cell, Delays, scaled, with_formats
from runner import Benchmark, Figures, Lines, Measurement, Report, Result

from spark_dstl.percentiles import PERCENTILES, percentile

FLOOR = "floor"
# Of the commit alone, which the tail of the storage's delays must not reach.
OF_COMMIT = (50, 99, 99.9)
RESAMPLINGS = 1000
# Requests by the columns of the table.
REQUESTS = {
    "writes": ("PUT",),
    "existence checks": ("HEAD",),
    "listings": ("LIST",),
    "others": ("GET", "COPY", "DELETE"),
}
# Objects that hold a batch's state changes and its commit.
STATE_FILES = ("changelog", "data file", "commits")
HEADER = (
    *("measurement", "partitions", "format", "state", "batches"),
    *(f"p{percent:g}" for percent in PERCENTILES),
    *("p50 over, 95 %", "max", "CPU", *(f"commit p{percent:g}" for percent in OF_COMMIT), *REQUESTS, "bytes"),
)
LEGEND = (
    "Times are in ms, of whole batches and of their commits; in brackets the difference to the same percentile of the "
    "floor, and in a separate column the limits of the median's difference in 95 of 100 resamplings. CPU: processor "
    "time of the process while a batch ran, median over batches. Requests are those made while a batch ran, median "
    "over batches, without snapshots: objects written, existence checks, listings, and reads, copies and deletions. "
    "Bytes: written for state changes and commit entry in a median batch. Format: version of Spark's checkpoints."
)


class Contender:
    """What one contender did in one cell. A commit is the barrier, if there is one, and the commit entry's write."""

    def __init__(self, lines: Lines) -> None:
        batches = [line for line in lines if line["kind"] == "batch"]
        self.batch_ms: list[float] = [line["durations"]["triggerExecution"] for line in batches]
        self.cpu_ms: list[float] = [line["cpuMs"] for line in batches]
        self.commit_ms: list[float] = [line["durations"].get("commitOffsets", 0) for line in batches]
        # Of each batch, while it ran; all contenders take snapshots in the background, by the same rules.
        self.requests = [[of for of in line["requests"] if of["file"] != "snapshot"] for line in batches]
        # Written in the measured time, in the background as well.
        self.data_files = sum(
            line["count"]
            for line in lines
            if line["kind"] == "requests" and (line["request"], line["file"]) == ("PUT", "data file")
        )

    def asked(self, wanted: Sequence[str]) -> float | None:
        """Return the median number of such requests over batches; `None` on a disk, where none are counted."""
        counts = [sum(of["count"] for of in batch if of["request"] in wanted) for batch in self.requests]
        return statistics.median(counts) if any(self.requests) else None

    def stored_bytes(self) -> float | None:
        """Return the median, over batches, of the bytes of state changes and commit entries written."""
        stored = [
            sum(of["bytes"] for of in batch if of["request"] == "PUT" and of["file"] in STATE_FILES)
            for batch in self.requests
        ]
        return statistics.median(stored) if any(stored) else None


@dataclass
class Measured:
    cell: Cell
    contenders: dict[str, Contender]

    @staticmethod
    def of(result: Result) -> Measured:
        """Read the lines of the cell's process. A cell that failed has the contenders that have batches."""
        (_, lines), *_ = result.processes
        found = {name: Contender([line for line in lines if line["contender"] == name]) for name in LABELS}
        return Measured(Cell(**result.case), {name: of for name, of in found.items() if of.batch_ms})

    def compared(
        self,
        own: str,
        other: str,
        compare: Callable[[Sequence[float], Sequence[float]], float],
        times: Callable[[Contender], Sequence[float]] = lambda of: of.batch_ms,
    ) -> tuple[float, float, float]:
        """Compare times of batches, with the limits of 95 in 100 resamplings: the bootstrap (Efron 1979).

        Rounds are drawn, not batches: other work on the machine meets all contenders of a round.
        """
        rounds = list(zip(times(self.contenders[own]), times(self.contenders[other]), strict=False))
        chance = random.Random(0)
        drawn = [chance.choices(rounds, k=len(rounds)) for _ in range(RESAMPLINGS)]
        value, *found = (compare(*zip(*of, strict=True)) for of in [rounds, *drawn])
        found.sort()
        return value, found[int(RESAMPLINGS * 0.025)], found[int(RESAMPLINGS * 0.975) - 1]

    def rows(self) -> list[list[str]]:
        return [
            [
                f"{self.cell.group}: {self.cell.workload}",
                str(self.cell.partitions),
                f"v{self.cell.format_version}",
                LABELS[name],
                str(len(contender.batch_ms)),
                *self._times(name),
                f"{max(contender.batch_ms):,.0f}",
                number(statistics.median(contender.cpu_ms)),
                *(number(percentile(contender.commit_ms, percent)) for percent in OF_COMMIT),
                *map(number, map(contender.asked, REQUESTS.values())),
                number(contender.stored_bytes()),
            ]
            for name, contender in self.contenders.items()
        ]

    def _times(self, name: str) -> list[str]:
        """Show percentiles with their differences to the floor's, and the limits of the median's difference."""
        own = [percentile(self.contenders[name].batch_ms, percent) for percent in PERCENTILES]
        if name == FLOOR or FLOOR not in self.contenders:
            return [*map(number, own), ""]
        floor = [percentile(self.contenders[FLOOR].batch_ms, percent) for percent in PERCENTILES]
        shown = [
            number(value) if value is None or base is None else f"{value:,.0f} ({value - base:+,.0f})"
            for value, base in zip(own, floor, strict=True)
        ]
        _, low, high = self.compared(name, FLOOR, lambda times, base: nearest(times, 50) - nearest(base, 50))
        return [*shown, f"{low:+,.0f} to {high:+,.0f}"]

    def remarks(self) -> list[str]:
        """Compare with stock Spark what is stored and how fast batches are; compare snapshots with their absence."""
        lines = []
        ours = self.contenders.get("dstl")
        for other in self.contenders if ours else ():
            if other != "dstl":
                cpu = self.compared("dstl", other, ratio_of_medians, lambda of: of.cpu_ms)
                lines.append("{:.3f} times ({:.3f} to {:.3f}) the processor time of ".format(*cpu) + LABELS[other])
        for other in ("direct", "default"):
            stock = self.contenders.get(other)
            if ours and stock:
                rate = self.compared("dstl", other, lambda own, base: ratio_of_medians(base, own))
                lines.append("{:.3f} times ({:.3f} to {:.3f}) the rows a second of ".format(*rate) + LABELS[other])
                own, stored = ours.stored_bytes(), stock.stored_bytes()
                if own and stored:
                    lines.append(f"{own / stored:.3f} times the bytes of {LABELS[other]} ({own:,.0f}, {stored:,.0f})")
        if set(SNAPSHOTS) <= set(self.contenders):
            if all(percentile(of.batch_ms, 99) is not None for of in self.contenders.values()):
                ratio = self.compared(*SNAPSHOTS, lambda own, others: nearest(own, 99) / nearest(others, 99))
                lines.append("p99 {:.2f} times ({:.2f} to {:.2f}) that of ".format(*ratio) + LABELS[SNAPSHOTS[1]])
            files = {name: of.data_files / len(of.batch_ms) for name, of in self.contenders.items()}
            lines.append("data files a batch: " + ", ".join(f"{name} {of:.1f}" for name, of in files.items()))
        return [f"{self.cell.name}: {line}" for line in lines]

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


class Compare(Benchmark):
    """Spark's RocksDB state store with two file managers, spark-dstl, and a floor without durable state."""

    title = "Comparison with stock Spark"
    command = "make bench"

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the plan and of the storage's delays."""
        parser.add_argument("--scale", type=float, default=1.0, help="multiply the number of rounds by this")
        help_ = "of Spark's checkpoints; given twice, both are measured (without it, both where the plan has both)"
        parser.add_argument("--format-version", action="append", type=int, choices=(1, 2), help=help_)
        Delays.options(parser)

    def cases(self, options: argparse.Namespace) -> list[Cell]:
        versions = options.format_version or ([1] if options.quick else [])
        return with_formats(scaled(QUICK if options.quick else FULL, options.scale), versions)

    def measure(self, case: Cell, run: Measurement) -> None:
        """Measure a cell in one process."""
        delays = Delays.of(run.options)
        run.result.storage = described(delays)
        run.process("", case.spec(str(run.directory / "checkpoints"), delays), case.batches)

    def report(self, results: Sequence[Result]) -> Report:
        """Make the table, ratios and the distributions of batch times."""
        cells = [cell for cell in map(Measured.of, results) if cell.contenders]
        tables = [Figures("Batches", HEADER, LEGEND, [row for cell in cells for row in cell.rows()])]
        # A plot a workload, preferably with 64 partitions and the newest checkpoint format.
        drawn = [cell for cell in cells if cell.cell.group == "compare"]
        drawn.sort(key=lambda one: (one.cell.format_version, one.cell.partitions == 64))
        panels = {one.cell.workload: one.panel() for one in drawn}
        charts = {"batch-times.png": line_chart(list(panels.values()), LABELS)} if panels else {}
        return Report(tables, [line for cell in cells for line in cell.remarks()], charts)


def described(delays: Delays, slots: int = SLOTS) -> str:
    return (
        f"Storage: a request takes {delays.median_ms:g} ms in the median, {delays.p99_ms:g} ms at the 99th percentile, "
        f"{delays.tail_ratio:.1%} of all {delays.tail_ms:g} ms longer, and content is transferred at "
        f"{delays.bytes_per_second / 1e6:g} MB/s a request; seed {delays.seed}. "
        f"{slots} task slots on {os.cpu_count()} processors."
    )


def ratio_of_medians(values: Sequence[float], base: Sequence[float]) -> float:
    """Divide the median of values by that of others."""
    return statistics.median(values) / statistics.median(base)


def nearest(values: Sequence[float], percent: float) -> float:
    """Return a percentile, the nearest rank, also of so few values that it is the largest."""
    found = percentile(values, percent)
    return max(values) if found is None else found


def number(value: float | None) -> str:
    """Show a number without decimals, or that there is none."""
    return "-" if value is None else f"{value:,.0f}"
