# SPDX-License-Identifier: Apache-2.0
"""Measures what grows with the number of batches, beside stock Spark: objects, bytes, heap and requests.

Each contender runs the same batches in a separate process, on storage without delays. Batches come sooner than in
most queries, so the intervals of Spark and of the log are shortened: what happens from time to time happens as often
for each batch as in a query with a batch every ten seconds.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from charts import Panel, line_chart
from matplotlib.figure import Figure
from plan import AGAINST_STOCK, FORMAT_VERSION, LABELS, spec_of
from runner import Benchmark, Figures, Measurement, Report, Result

STREAMING = "spark.sql.streaming."
LOG = f"{STREAMING}stateStore.dstl."
# The query whose intervals are scaled has a batch every ten seconds.
BATCH_MS = 10_000
BATCHES_OF_AN_HOUR = 3_600_000 // BATCH_MS
# Defaults, in milliseconds.
MAINTENANCE_MS, MATERIALIZE_MS, PERSIST_DELAY_MS = 60_000, 600_000, 1_000


@dataclass(frozen=True)
class Case:
    """A query of many batches, one every `period_ms`; Spark retains `retain` of them."""

    workload: str
    partitions: int
    batches: int
    period_ms: int
    retain: int = 100
    # Prime to ten: samples meet all phases of what happens every ten batches.
    sample_every: int = 7
    heap_every: int = 7
    # Whether changes are in commit entries: then data files hold snapshots alone.
    is_inline: bool = True
    format_version: int = 1

    @property
    def name(self) -> str:
        """Unique in a plan."""
        return f"{self.workload}-{self.partitions}-{self.batches}-v{self.format_version}"

    def scaled(self, millis: int, at_least: int) -> str:
        """Scale an interval of a query with a batch every ten seconds."""
        return f"{max(at_least, millis * self.period_ms // BATCH_MS)}ms"

    def confs(self) -> dict[str, str]:
        """Scale the default intervals."""
        return {
            FORMAT_VERSION: str(self.format_version),
            f"{STREAMING}minBatchesToRetain": str(self.retain),
            f"{STREAMING}stateStore.maintenanceInterval": self.scaled(MAINTENANCE_MS, 1),
            f"{LOG}materialize.interval": self.scaled(MATERIALIZE_MS, 1000),
            f"{LOG}batch.persistDelay": self.scaled(PERSIST_DELAY_MS, 10),
        }

    def spec(self, contender: str, root: str) -> dict[str, Any]:
        """Return what the JVM reads."""
        return spec_of(self, benchmark="growth", contender=contender, root=root, confs=self.confs())


FULL = [
    Case("aggregation", 16, 3000, period_ms=300),
    Case("windows", 16, 600, period_ms=300),
    Case("medium", 16, 300, period_ms=1000, retain=20, sample_every=3, is_inline=False),
]
QUICK = [Case("aggregation", 4, 120, period_ms=150, retain=10, sample_every=3)]


OURS, STOCK = AGAINST_STOCK
KINDS = {"commits": "commit entries", "data file": "data files", "changelog": "changelogs", "snapshot": "snapshots"}
STORED_HEADER = (
    *("measurement", "state", "batches", "ms a batch", "objects", "of before", "MB", "of before"),
    *KINDS.values(),
    *("other", "live MB", "heap MB", "of before"),
)
STORED_LEGEND = (
    "Objects and bytes below the checkpoint: means over the last third of the batches, and divided by those over the "
    "third before; of each kind, objects / MB. Live: tables of RocksDB. Heap: of the driver, with its tasks, after "
    "garbage collection. Ms a batch: from one batch to the next, with the time of measuring."
)
REQUESTS_HEADER = ("measurement", "requests", LABELS[OURS], LABELS[STOCK])
REQUESTS_LEGEND = (
    f"In {BATCHES_OF_AN_HOUR} batches, an hour with a batch every {BATCH_MS // 1000} s, over the last third of the "
    "batches. Writes of snapshots: with spark-dstl data files, counted only if changes are not in data files as "
    "well. Deletions: without those of `offsets` and `commits` entries, which are one by one."
)


Sample = dict[str, Any]
Value = Callable[[Sample], float | None]


@dataclass(frozen=True)
class Curve:
    """Samples of storage and driver in one contender's run, which may be interrupted: the lines of its process."""

    samples: list[Sample]

    @property
    def batches(self) -> int:
        return int(self.samples[-1]["batches"])

    def third(self, number: int) -> list[Sample]:
        """Return the samples of the first, second or third part of the batches: 0, 1 or 2."""
        of = self.batches / 3
        return [sample for sample in self.samples if number * of < sample["batches"] <= (number + 1) * of]

    def mean(self, figure: Value, third: int = 2) -> float:
        """Average a figure over the last third, or another one."""
        found = [value for value in map(figure, self.third(third)) if value is not None]
        return float(statistics.mean(found)) if found else float("nan")

    def with_growth(self, figure: Value, form: str) -> list[str]:
        """Show a mean and its ratio to that of the third before: 1 where a curve is flat."""
        return [format(self.mean(figure), form), f"{self.mean(figure) / self.mean(figure, 1):.2f}"]

    def of_kinds(self, kinds: Collection[str]) -> str:
        """Show the number of objects of these kinds, and their MB."""
        return f"{self.mean(objects(kinds)):,.0f} / {self.mean(megabytes(kinds)):,.2f}"

    def hourly(self, wanted: Collection[tuple[str, str]]) -> float:
        """Count requests, by request and kind of file, in the batches of an hour, over the last third."""
        before, last = self.third(1)[-1], self.samples[-1]
        counts = [
            sum(of["count"] for of in sample["requests"] if (of["request"], of["file"]) in wanted)
            for sample in (before, last)
        ]
        return float((counts[1] - counts[0]) / (last["batches"] - before["batches"]) * BATCHES_OF_AN_HOUR)

    def batch_ms(self) -> float:
        """Return the mean time from one batch to the next."""
        first, last = self.samples[0], self.samples[-1]
        return float((last["millis"] - first["millis"]) / (last["batches"] - first["batches"]))


def objects(kinds: Collection[str] | None = None) -> Value:
    """Count objects of some kinds, or of all."""
    return lambda sample: sum(count for kind, (count, _) in sample["stored"].items() if kinds is None or kind in kinds)


def megabytes(kinds: Collection[str] | None = None) -> Value:
    """Add up the MB of such objects."""
    return lambda sample: sum(of for kind, (_, of) in sample["stored"].items() if kinds is None or kind in kinds) / 1e6


def heap_megabytes(sample: Sample) -> float | None:
    """Return the live heap, which only some samples have."""
    return None if sample.get("heap") is None else sample["heap"] / 1e6


@dataclass
class Grown:
    """One case's outcome: the runs with samples enough for thirds."""

    case: Case
    curves: dict[str, Curve]

    @staticmethod
    def of(result: Result) -> Grown:
        """Read what the processes of a case wrote."""
        return Grown(Case(**result.case), {name: Curve(lines) for name, lines in result.processes if len(lines) >= 6})

    def stored_rows(self) -> list[list[str]]:
        return [
            [
                self.case.name,
                LABELS[name],
                f"{curve.batches:,}",
                f"{curve.batch_ms():,.0f}",
                *curve.with_growth(objects(), ",.0f"),
                *curve.with_growth(megabytes(), ",.2f"),
                *(curve.of_kinds((kind,)) for kind in KINDS),
                curve.of_kinds({kind for sample in curve.samples for kind in sample["stored"]} - set(KINDS)),
                f"{curve.mean(lambda sample: sample['liveBytes']) / 1e6:,.2f}",
                *curve.with_growth(heap_megabytes, ",.1f"),
            ]
            for name, curve in self.curves.items()
        ]

    def requests(self) -> dict[str, set[tuple[str, str]]]:
        """Return the requests of the background, by what they are for, then those of each kind."""
        seen = {(of["request"], of["file"]) for one in self.curves.values() for of in one.samples[-1]["requests"]}
        background = {
            "writes of snapshots": {("PUT", "snapshot"), ("PUT", "data file")} if self.case.is_inline else set(),
            "deletions": {of for of in seen if of[0] == "DELETE" and of[1] not in ("commits", "offsets")},
            "listings": {of for of in seen if of[0] == "LIST"},
        }
        each = {f"{request} {file}": {(request, file)} for request, file in sorted(seen)}
        return {**background, "all of these": set().union(*background.values()), **each}

    def request_rows(self) -> list[list[str]]:
        return [
            [
                self.case.name,
                name,
                *(f"{self.curves[of].hourly(wanted):,.0f}" if of in self.curves else "-" for of in AGAINST_STOCK),
            ]
            for name, wanted in self.requests().items()
            if wanted
        ]

    def remarks(self) -> list[str]:
        """Describe the case's configuration, and compare with stock up to the batch that both have reached."""
        confs = ", ".join(f"`{key}={value}`" for key, value in self.case.confs().items())
        lines = [f"{self.case.batches:,} batches, one every {self.case.period_ms} ms; {confs}."]
        if set(self.curves) == set(AGAINST_STOCK):
            common = min(curve.batches for curve in self.curves.values())
            ours, stock = (
                Curve([of for of in self.curves[name].samples if of["batches"] <= common]).mean(megabytes())
                for name in AGAINST_STOCK
            )
            times = f"{ours / stock:.2f} times the bytes of {LABELS[STOCK]}"
            lines.append(f"{times}, in the last third of {common:,} batches")
        return [f"{self.case.name}: {line}" for line in lines]

    def chart(self) -> Figure:
        """Draw objects, bytes and heap over batches."""
        figures: dict[str, Value] = {
            "objects below the checkpoint": objects(),
            "MB below the checkpoint": megabytes(),
            "heap after garbage collection, MB": heap_megabytes,
        }
        panels = []
        for title, figure in figures.items():
            points = {
                name: [(of["batches"], value) for of in curve.samples if (value := figure(of)) is not None]
                for name, curve in self.curves.items()
            }
            panels.append(Panel(title, "batches", points))
        return line_chart(panels, LABELS)


class Growth(Benchmark):
    """Many batches of spark-dstl and of stock Spark with direct writes."""

    title = "Growth"
    command = "make bench-growth"

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--scale", type=float, default=1.0, help="multiply the number of batches by this")
        parser.add_argument("--period-ms", type=int, help="from the start of one batch to the next one's")

    def cases(self, options: argparse.Namespace) -> list[Case]:
        return [
            replace(case, batches=round(case.batches * options.scale), period_ms=options.period_ms or case.period_ms)
            for case in (QUICK if options.quick else FULL)
        ]

    def measure(self, case: Case, run: Measurement) -> None:
        """Run each contender in a separate process."""
        for name in AGAINST_STOCK:
            root = str(run.directory / f"{name}-checkpoints")
            run.process(name, case.spec(name, root), case.batches)

    def report(self, results: Sequence[Result]) -> Report:
        """Make tables of objects and of requests, comparisons, and a chart of each case."""
        found = [one for one in map(Grown.of, results) if one.curves]
        stored = [row for one in found for row in one.stored_rows()]
        requests = [row for one in found for row in one.request_rows()]
        tables = [
            Figures("Objects", STORED_HEADER, STORED_LEGEND, stored),
            Figures("Requests", REQUESTS_HEADER, REQUESTS_LEGEND, requests),
        ]
        charts = {f"growth-{one.case.name}.png": one.chart() for one in found}
        return Report(tables, [line for one in found for line in one.remarks()], charts)
