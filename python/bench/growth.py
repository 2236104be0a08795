# SPDX-License-Identifier: Apache-2.0
"""Measures what grows with the number of batches, beside stock Spark: objects, bytes, heap and requests.

Each contender runs the same batches in a separate process, on storage without delays. Batches come sooner than in
most queries, so the intervals of Spark and of the log are shortened: what happens from time to time happens as often
for each batch as in a query with a batch every ten seconds.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from charts import Panel, line_chart
from matplotlib.figure import Figure
from plan import AGAINST_STOCK, FORMAT_VERSION, LABELS, spec_of
from runner import Benchmark, Figures, Lines, Measurement, Report, Result

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

    def spec(self, contender: str, root: str, confs: dict[str, str]) -> dict[str, Any]:
        """Return what the JVM reads."""
        confs = {**self.confs(), **confs}
        return spec_of(self, benchmark="growth", contender=contender, root=root, confs=confs)


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
REQUESTS_HEADER = ("measurement", "requests", "of", LABELS[OURS], LABELS[STOCK])
REQUESTS_LEGEND = (
    f"Requests in {BATCHES_OF_AN_HOUR} batches, an hour with a batch every {BATCH_MS // 1000} s, over the last third "
    "of the batches. Writes of snapshots: with spark-dstl data files, counted only if changes are not in data files as "
    "well. Deletions: without those of `offsets` and `commits` entries, which are one by one."
)


@dataclass(frozen=True)
class Sample:
    """State of storage and driver after so many batches."""

    batches: int
    millis: int
    # By kind of file.
    objects: dict[str, int]
    bytes: dict[str, int]
    heap: int | None
    live_bytes: int
    # Since the start, by request and kind of file.
    requests: dict[tuple[str, str], int]

    @staticmethod
    def of(line: dict[str, Any]) -> Sample:
        """Read a line of the JVM."""
        return Sample(
            line["batches"],
            line["millis"],
            {kind: count for kind, (count, _) in line["stored"].items()},
            {kind: size for kind, (_, size) in line["stored"].items()},
            line.get("heap"),
            line["liveBytes"],
            {(asked["request"], asked["file"]): asked["count"] for asked in line["requests"]},
        )


@dataclass
class Curve:
    """Samples of one contender's run, which may be interrupted."""

    lines: Lines = field(default_factory=list)

    @property
    def samples(self) -> list[Sample]:
        """Return the samples in the order of batches."""
        return [Sample.of(line) for line in self.lines]

    def third(self, number: int) -> list[Sample]:
        """Return the samples of the first, second or third part of the batches: 0, 1 or 2."""
        samples = self.samples
        of = samples[-1].batches / 3
        return [sample for sample in samples if number * of < sample.batches <= (number + 1) * of]

    def mean(self, figure: Callable[[Sample], float | None], third: int = 2) -> float:
        """Average a figure over the last third, or another one."""
        found = [value for value in map(figure, self.third(third)) if value is not None]
        return statistics.mean(found) if found else float("nan")

    def growth(self, figure: Callable[[Sample], float | None]) -> float:
        """Divide the last third's mean by that of the third before: 1 where a curve is flat."""
        return self.mean(figure) / self.mean(figure, 1)

    def hourly(self, request: str, file: str) -> float:
        """Count such requests in the batches of an hour, over the last third."""
        before, last = self.third(1)[-1], self.samples[-1]
        asked = last.requests.get((request, file), 0) - before.requests.get((request, file), 0)
        return asked / (last.batches - before.batches) * BATCHES_OF_AN_HOUR

    def batch_ms(self) -> float:
        """Return the mean time from one batch to the next."""
        samples = self.samples
        return (samples[-1].millis - samples[0].millis) / (samples[-1].batches - samples[0].batches)


@dataclass
class Grown:
    """One case's outcome."""

    case: Case
    curves: dict[str, Curve] = field(default_factory=lambda: {name: Curve() for name in AGAINST_STOCK})

    @staticmethod
    def of(result: Result) -> Grown:
        """Read what the processes of a case wrote."""
        return Grown(Case(**result.case), {name: Curve(lines) for name, lines in result.processes})

    @property
    def measured(self) -> dict[str, Curve]:
        """Return the runs with samples enough for thirds."""
        return {name: curve for name, curve in self.curves.items() if len(curve.lines) >= 6}

    @property
    def compared(self) -> dict[str, Curve]:
        """Return both runs up to the batch that both have reached; none if one has too few samples."""
        curves = self.measured
        if set(curves) != set(AGAINST_STOCK):
            return {}
        common = min(curve.lines[-1]["batches"] for curve in curves.values())
        return {
            name: Curve([line for line in curve.lines if line["batches"] <= common]) for name, curve in curves.items()
        }

    def stored_rows(self) -> list[list[str]]:
        """Make the rows of what is stored."""
        return [
            [
                self.case.name,
                LABELS[name],
                f"{curve.samples[-1].batches:,}",
                f"{curve.batch_ms():,.0f}",
                *with_growth(curve, all_objects, 1, ",.0f"),
                *with_growth(curve, all_bytes, 1e6, ",.2f"),
                *(of_kinds(curve, (kind,)) for kind in KINDS),
                of_kinds(curve, sorted({kind for sample in curve.samples for kind in sample.objects} - set(KINDS))),
                f"{curve.mean(lambda sample: sample.live_bytes) / 1e6:,.2f}",
                *with_growth(curve, lambda sample: sample.heap, 1e6, ",.1f"),
            ]
            for name, curve in self.measured.items()
        ]

    def background(self) -> dict[str, list[tuple[str, str]]]:
        """Return the requests of snapshots, retention and the search for orphans, by what they are for."""
        kinds = sorted({file for curve in self.measured.values() for _, file in curve.samples[-1].requests})
        writes = [("PUT", "snapshot"), ("PUT", "data file")] if self.case.is_inline else []
        return {
            **({"writes of snapshots": writes} if writes else {}),
            "deletions": [("DELETE", kind) for kind in kinds if kind not in ("commits", "offsets")],
            "listings": [("LIST", kind) for kind in kinds],
        }

    def request_rows(self) -> list[list[str]]:
        """Make the rows of requests: first those of the background together, then each."""
        curves = self.measured

        def row(name: str, of: str, requests: Sequence[tuple[str, str]]) -> list[str]:
            counts = {of: sum(curve.hourly(*asked) for asked in requests) for of, curve in curves.items()}
            return [
                self.case.name,
                name,
                of,
                *(f"{counts[of]:,.0f}" if of in counts else "-" for of in AGAINST_STOCK),
            ]

        groups = self.background()
        together = [row(name, "background", asked) for name, asked in groups.items()]
        all_ = [asked for group in groups.values() for asked in group]
        seen = sorted({asked for curve in curves.values() for asked in curve.samples[-1].requests})
        each = [row(request, file, [(request, file)]) for request, file in seen]
        return [
            *together,
            row("all of these", "background", all_),
            *(found for found in each if set(found[3:]) != {"0"}),
        ]

    def lines(self) -> list[str]:
        """Compare with stock."""
        curves = self.compared
        if not curves:
            return []
        ours, stock = (curves[name].mean(all_bytes) for name in AGAINST_STOCK)
        asked = [asked for group in self.background().values() for asked in group]
        counts = [sum(curves[name].hourly(*of) for of in asked) for name in AGAINST_STOCK]
        batches = curves[OURS].lines[-1]["batches"]
        return [
            f"{self.case.name}: {ours / stock:.2f} times the bytes of {LABELS[STOCK]}, "
            f"in the last third of {batches:,} batches",
            f"{self.case.name}: {counts[0]:,.0f} background requests in {BATCHES_OF_AN_HOUR} batches, "
            f"{counts[1]:,.0f} of {LABELS[STOCK]}",
        ]

    def described(self) -> str:
        """Describe the case's configuration."""
        confs = ", ".join(f"`{key}={value}`" for key, value in self.case.confs().items())
        return f"{self.case.name}: {self.case.batches:,} batches, one every {self.case.period_ms} ms; {confs}."


def all_objects(sample: Sample) -> float:
    """Count all objects."""
    return sum(sample.objects.values())


def all_bytes(sample: Sample) -> float:
    """Add up the bytes of all objects."""
    return sum(sample.bytes.values())


def with_growth(curve: Curve, figure: Callable[[Sample], float | None], unit: float, form: str) -> list[str]:
    """Show a mean and its ratio to that of the third before."""
    return [format(curve.mean(figure) / unit, form), f"{curve.growth(figure):.2f}"]


def of_kinds(curve: Curve, kinds: Sequence[str]) -> str:
    """Show the number of objects of these kinds, and their MB."""
    objects = curve.mean(lambda sample: sum(sample.objects.get(kind, 0) for kind in kinds))
    size = curve.mean(lambda sample: sum(sample.bytes.get(kind, 0) for kind in kinds))
    return f"{objects:,.0f} / {size / 1e6:,.2f}"


class Growth(Benchmark):
    """Many batches of spark-dstl and of stock Spark with direct writes."""

    title = "Growth"
    command = "make bench-growth"

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the cases."""
        parser.add_argument("--scale", type=float, default=1.0, help="multiply the number of batches by this")
        parser.add_argument("--period-ms", type=int, help="from the start of one batch to the next one's")

    def cases(self, options: argparse.Namespace) -> list[Case]:
        """Return the cases, with the options applied."""
        return [
            replace(case, batches=round(case.batches * options.scale), period_ms=options.period_ms or case.period_ms)
            for case in (QUICK if options.quick else FULL)
        ]

    def measure(self, case: Case, run: Measurement) -> None:
        """Run each contender in a separate process."""
        for name in AGAINST_STOCK:
            root = str(run.directory / f"{name}-checkpoints")
            run.process(name, case.spec(name, root, dict(run.options.conf)), case.batches)

    def report(self, results: Sequence[Result]) -> Report:
        """Make tables of objects and of requests, comparisons, and a chart of each case."""
        found = [one for one in map(Grown.of, results) if one.measured]
        tables = [
            Figures("Objects", STORED_HEADER, STORED_LEGEND, [one.stored_rows() for one in found]),
            Figures("Requests", REQUESTS_HEADER, REQUESTS_LEGEND, [one.request_rows() for one in found]),
        ]
        remarks = [line for one in found for line in (one.described(), *one.lines())]
        return Report(tables, remarks, {f"growth-{one.case.name}.png": chart(one) for one in found})


def chart(result: Grown) -> Figure:
    """Draw objects, bytes and heap over batches."""
    figures: list[tuple[str, Callable[[Sample], float | None]]] = [
        ("objects below the checkpoint", all_objects),
        ("MB below the checkpoint", lambda sample: all_bytes(sample) / 1e6),
        ("heap after garbage collection, MB", lambda sample: None if sample.heap is None else sample.heap / 1e6),
    ]
    panels = []
    for title, figure in figures:
        points = {
            name: [(sample.batches, value) for sample in curve.samples if (value := figure(sample)) is not None]
            for name, curve in result.measured.items()
        }
        if any(points.values()):
            panels.append(Panel(title, "batches", {name: found for name, found in points.items() if found}))
    return line_chart(panels, LABELS)
