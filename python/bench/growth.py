"""Measures what grows with the number of batches, ours beside stock Spark's: objects, bytes, heap and requests.

Each contender runs the same batches in a process of its own, on storage that takes no time. Batches come sooner than in
most queries, so what Spark and the log do from time to time is done sooner as well: as often for each batch as in a
query with a batch every ten seconds.

Prints tables; leaves figures as JSON, the tables as a page and a chart of each case. Exits with 0, 1 if a measurement
failed, 130 on Ctrl-C; what was measured until then is kept.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import WORK, BenchFailed, child, command, exit_code, setting, terminated, wide_console
from matplotlib import pyplot
from plan import AGAINST_STOCK, FORMAT_VERSION
from report import COLOURS, LABELS, markdown_table, save
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

MAIN = "sparkdstl.bench.growth.GrowthMain"
OURS, STOCK = AGAINST_STOCK
STREAMING = "spark.sql.streaming."
LOG = f"{STREAMING}stateStore.dstl."
# Of the query that is stood in for: times in batches are times divided by this.
BATCH_MS = 10_000
BATCHES_OF_AN_HOUR = 3_600_000 // BATCH_MS
# By default, in milliseconds.
MAINTENANCE_MS, MATERIALIZE_MS, PERSIST_DELAY_MS = 60_000, 600_000, 1_000

KINDS = {"commits": "commit entries", "data file": "data files", "changelog": "changelogs", "snapshot": "snapshots"}
STORED_HEADER = (
    *("measurement", "state", "batches", "ms a batch", "objects", "of before", "MB", "of before"),
    *KINDS.values(),
    *("other", "live MB", "heap MB", "of before"),
)
STORED_LEGEND = (
    "What is below the checkpoint: means over the last third of the batches, and divided by those over the third "
    "before; of each kind, objects / MB. Live: tables of RocksDB. Heap: of the driver, with its tasks, after garbage "
    "collection. Ms a batch: from one to the next, those in which it was measured included."
)
REQUESTS_HEADER = ("measurement", "requests", "of", LABELS[OURS], LABELS[STOCK])
REQUESTS_LEGEND = (
    f"Requests in {BATCHES_OF_AN_HOUR} batches, an hour with a batch every {BATCH_MS // 1000} s, over the last third "
    "of the batches. Writes of snapshots: with spark-dstl data files, as commit entries are written anyway; only where "
    "changes are not in data files as well. Deletions: without Spark's entries of batches, which go one by one."
)


@dataclass(frozen=True)
class Case:
    """A query of many batches, one every `period_ms`; Spark retains `retain` of them."""

    workload: str
    partitions: int
    batches: int
    period_ms: int
    retain: int = 100
    # Odd, so that samples are of all phases of what happens every ten batches.
    sample_every: int = 7
    heap_every: int = 7
    # Whether changes are in commit entries, so that data files are those of snapshots.
    is_inline: bool = True
    format_version: int = 1

    @property
    def name(self) -> str:
        """Unique in a plan."""
        return f"{self.workload}-{self.partitions}-{self.batches}-v{self.format_version}"

    def scaled(self, millis: int, at_least: int) -> str:
        """Make of a time in a query with a batch every ten seconds one in this."""
        return f"{max(at_least, millis * self.period_ms // BATCH_MS)}ms"

    def confs(self) -> dict[str, str]:
        """Make of the defaults what is as much in batches."""
        return {
            FORMAT_VERSION: str(self.format_version),
            f"{STREAMING}minBatchesToRetain": str(self.retain),
            f"{STREAMING}stateStore.maintenanceInterval": self.scaled(MAINTENANCE_MS, 1),
            f"{LOG}materialize.interval": self.scaled(MATERIALIZE_MS, 1000),
            f"{LOG}batch.persistDelay": self.scaled(PERSIST_DELAY_MS, 10),
        }

    def spec(self, contender: str, root: Path, output: Path, confs: dict[str, str]) -> dict[str, Any]:
        """As the JVM side reads it."""
        return {
            "workload": self.workload,
            "partitions": self.partitions,
            "contender": contender,
            "root": str(root),
            "output": str(output),
            "batches": self.batches,
            "periodMs": self.period_ms,
            "sampleEvery": self.sample_every,
            "heapEvery": self.heap_every,
            "confs": {**self.confs(), **confs},
        }


FULL = [
    Case("aggregation", 16, 3000, period_ms=300),
    Case("windows", 16, 600, period_ms=300),
    Case("medium", 16, 300, period_ms=1000, retain=20, sample_every=3, is_inline=False),
]
QUICK = [Case("aggregation", 4, 120, period_ms=150, retain=10, sample_every=3)]


@dataclass(frozen=True)
class Sample:
    """What there was after so many batches."""

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
        """Read what the JVM side has written."""
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
    """What one contender's run has shown, as far as it has come."""

    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def samples(self) -> list[Sample]:
        """In the order of batches."""
        return [Sample.of(line) for line in self.lines]

    def third(self, number: int) -> list[Sample]:
        """Take the samples of the first, second or third part of the batches: 0, 1 or 2."""
        samples = self.samples
        of = samples[-1].batches / 3
        return [sample for sample in samples if number * of < sample.batches <= (number + 1) * of]

    def mean(self, figure: Callable[[Sample], float | None], third: int = 2) -> float:
        """Average what the samples of the last third have of it, or those of another one."""
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
        """From one batch to the next, over the whole run."""
        samples = self.samples
        return (samples[-1].millis - samples[0].millis) / (samples[-1].batches - samples[0].batches)


@dataclass
class Grown:
    """One case's outcome, as far as it has come."""

    case: Case
    curves: dict[str, Curve] = field(default_factory=lambda: {name: Curve() for name in AGAINST_STOCK})

    @property
    def measured(self) -> dict[str, Curve]:
        """Those with samples enough for thirds."""
        return {name: curve for name, curve in self.curves.items() if len(curve.lines) >= 6}

    @property
    def can_be_compared(self) -> bool:
        """Whether both have run all batches."""
        return all(curve.lines and curve.lines[-1]["batches"] == self.case.batches for curve in self.curves.values())

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
        """Name the requests that snapshots, retention and the search for orphans make."""
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
        if not self.can_be_compared:
            return []
        ours, stock = (self.curves[name].mean(all_bytes) for name in AGAINST_STOCK)
        asked = [asked for group in self.background().values() for asked in group]
        counts = [sum(self.curves[name].hourly(*of) for of in asked) for name in AGAINST_STOCK]
        return [
            f"{self.case.name}: {ours / stock:.2f} times the bytes of {LABELS[STOCK]} in the last third of the batches",
            f"{self.case.name}: {counts[0]:,.0f} background requests in {BATCHES_OF_AN_HOUR} batches, "
            f"{counts[1]:,.0f} of {LABELS[STOCK]}",
        ]

    def described(self) -> str:
        """Tell what was configured."""
        confs = ", ".join(f"`{key}={value}`" for key, value in self.case.confs().items())
        return f"{self.case.name}: {self.case.batches:,} batches, one every {self.case.period_ms} ms; {confs}."


def all_objects(sample: Sample) -> float:
    """Count all objects."""
    return sum(sample.objects.values())


def all_bytes(sample: Sample) -> float:
    """Add up the bytes of all objects."""
    return sum(sample.bytes.values())


def with_growth(curve: Curve, figure: Callable[[Sample], float | None], unit: float, form: str) -> list[str]:
    """Show a mean and how it has changed."""
    return [format(curve.mean(figure) / unit, form), f"{curve.growth(figure):.2f}"]


def of_kinds(curve: Curve, kinds: Sequence[str]) -> str:
    """Show how many objects of these kinds there are, and of how many MB."""
    objects = curve.mean(lambda sample: sum(sample.objects.get(kind, 0) for kind in kinds))
    size = curve.mean(lambda sample: sum(sample.bytes.get(kind, 0) for kind in kinds))
    return f"{objects:,.0f} / {size / 1e6:,.2f}"


def written(case: Case, contender: str, directory: Path) -> Path:
    """Name the file of what a run has measured."""
    return directory / f"{case.name}-{contender}.jsonl"


def read(output: Path) -> Curve:
    """Take in what one process has written; its last line may be half a line, if it was killed."""
    whole = output.read_text(encoding="utf-8").rpartition("\n")[0] if output.exists() else ""
    return Curve([json.loads(line) for line in whole.splitlines()])


def measure(result: Grown, name: str, options: argparse.Namespace, progress: Progress, task: TaskID) -> None:
    """Run one contender; what it has written counts, however it ends."""
    case = result.case
    output = written(case, name, options.output)
    log = output.with_suffix(".log")
    output.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="dstl-bench-") as directory:
        spec = Path(directory) / "spec.json"
        content = case.spec(name, Path(directory) / "checkpoints", output, dict(options.conf))
        spec.write_text(json.dumps(content), encoding="utf-8")
        try:
            with child(command(MAIN, spec, directory, options.memory), log) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    if line.startswith("batches "):
                        progress.update(task, completed=int(line.split()[1]))
                if process.wait() != 0:
                    raise BenchFailed(f"{case.name} ended with exit code {process.returncode}, its log is {log}")
        finally:
            result.curves[name] = read(output)


def markdown(results: Sequence[Grown]) -> str:
    """Make a page with the tables and the charts."""
    lines = ["# Figures of growth", "", "Made by `make bench-growth`; do not edit.", ""]
    lines += [f"- {result.described()}" for result in results]
    for result in results:
        lines += ["", f"![{result.case.name}]({chart(result.case)})"]
    lines += ["", STORED_LEGEND, ""]
    lines += markdown_table(STORED_HEADER, (row for result in results for row in result.stored_rows()))
    lines += ["", REQUESTS_LEGEND, ""]
    lines += markdown_table(REQUESTS_HEADER, (row for result in results for row in result.request_rows()))
    lines += ["", *(f"- {line}" for result in results for line in result.lines())]
    return "\n".join(lines) + "\n"


def chart(case: Case) -> str:
    """Name the file of a case's chart."""
    return f"growth-{case.name}.svg"


def draw(result: Grown, path: Path) -> None:
    """Draw objects, bytes and heap over batches."""
    figures: list[tuple[str, Callable[[Sample], float | None]]] = [
        ("objects below the checkpoint", all_objects),
        ("MB below the checkpoint", lambda sample: all_bytes(sample) / 1e6),
        ("heap after garbage collection, MB", lambda sample: None if sample.heap is None else sample.heap / 1e6),
    ]
    drawing, plots = pyplot.subplots(1, len(figures), figsize=(15, 4), squeeze=False, layout="constrained")
    for plot, (title, figure) in zip(plots[0], figures, strict=True):
        for name, curve in result.measured.items():
            points = [(sample.batches, value) for sample in curve.samples if (value := figure(sample)) is not None]
            if points:
                plot.plot(*zip(*points, strict=True), label=LABELS[name], color=COLOURS[name], linewidth=1)
        plot.set_ylim(bottom=0)
        plot.set_title(title)
        plot.set_xlabel("batches")
        plot.grid(visible=True, alpha=0.3)
    save(drawing, plots[0][0], path)


def main() -> int:
    """Run the benchmark; returns the exit code."""
    parser = argparse.ArgumentParser(description="Measure what grows with the number of batches.")
    parser.add_argument("--quick", action="store_true", help="only show that it works, in about a minute")
    parser.add_argument("--only", action="append", metavar="TEXT", help="only cases whose name contains TEXT")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply the number of batches by this")
    parser.add_argument("--period-ms", type=int, default=None, help="from the start of one batch to the next one's")
    parser.add_argument("--report", action="store_true", help="measure nothing, show what the output has")
    parser.add_argument("--output", type=Path, default=None, help="directory for figures and charts")
    parser.add_argument("--memory", default="4g", help="heap of the process that is measured")
    parser.add_argument(
        "--conf", action="append", default=[], type=setting, help="a further SQL configuration, KEY=VALUE"
    )
    options = parser.parse_args()
    options.output = options.output or WORK / ("growth-quick" if options.quick else "growth")
    return exit_code(lambda: grow(options, wide_console()), "interrupted; what was measured is kept")


def grow(options: argparse.Namespace, console: Console) -> None:
    """Measure, show and save what was asked for."""
    options.output.mkdir(parents=True, exist_ok=True)
    cases = [
        replace(case, batches=round(case.batches * options.scale), period_ms=options.period_ms or case.period_ms)
        for case in (QUICK if options.quick else FULL)
        if not options.only or any(text in case.name for text in options.only)
    ]
    if options.report:
        names = AGAINST_STOCK
        found = [Grown(case, {name: read(written(case, name, options.output)) for name in names}) for case in cases]
        show([result for result in found if result.measured], options.output, console)
        return
    results = [Grown(case) for case in cases]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=console) as progress:
            for result in results:
                for name in result.curves:
                    what = f"{result.case.name}, {LABELS[name]}"
                    if not console.is_terminal:
                        console.print(f"{what}: {result.case.batches} batches")
                    measure(result, name, options, progress, progress.add_task(what, total=result.case.batches))
    finally:
        # What was measured before an interruption, or a failure, is not lost with it.
        show([result for result in results if result.measured], options.output, console)


def show(results: Sequence[Grown], output: Path, console: Console) -> None:
    """Print what was found, and save it."""
    if not results:
        console.print("there is nothing yet that could be shown")
        return
    content = [
        {"case": result.case.name, "confs": result.case.confs()}
        | {name: curve.lines for name, curve in result.curves.items()}
        for result in results
    ]
    (output / "results.json").write_text(json.dumps(content), encoding="utf-8")
    (output / "growth.md").write_text(markdown(results), encoding="utf-8")
    for header, legend, rows in (
        (STORED_HEADER, STORED_LEGEND, [result.stored_rows() for result in results]),
        (REQUESTS_HEADER, REQUESTS_LEGEND, [result.request_rows() for result in results]),
    ):
        table = Table(*header, caption=legend)
        for section in rows:
            for row in section:
                table.add_row(*row)
            table.add_section()
        console.print(table)
    for result in results:
        for line in result.lines():
            console.print(line)
        draw(result, output / chart(result.case))
    console.print(f"figures are in {output}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main())
