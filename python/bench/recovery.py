"""Measures how long a restarted query takes to its first batch's end, ours beside stock Spark's.

The checkpoint of each contender is made once, on storage that takes no time, with snapshots of a known version. In
turn, and from a copy each time, a new process runs one more batch on storage that takes its time like an object store.
A new query without state shows what of that is not recovery.

Prints a table; leaves figures as JSON, the table as a page and a chart. Exits with 0, 1 if a measurement failed, 130 on
Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import WORK, BenchFailed, child, command, exit_code, setting, storage, terminated, wide_console
from matplotlib import pyplot
from plan import FORMAT_VERSION, STORES, Delays
from report import COLOURS, LABELS, markdown_table
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

MAIN = "sparkdstl.bench.recovery.RecoveryMain"
# The one that starts with nothing: with the log's own settings, so that a difference is recovery.
EMPTY = "empty"
CONTENDERS = ("dstl", "direct", "default", EMPTY)
OURS, STOCK = "dstl", ("direct", "default")
NAMES = {**LABELS, EMPTY: "spark-dstl, no state yet"}
HEADER = ("measurement", "stores", "state", "since snapshot", "p50", "min", "max", "reads", "questions", "listings")
LEGEND = (
    "First batch of a query that is started again in a process of its own, in ms from the start of the query to the "
    "batch's end: median, minimum and maximum of the repetitions. Since snapshot: batches between the newest snapshots "
    "and the restart. Requests: in the median repetition's start and batch together."
)


@dataclass(frozen=True)
class Case:
    """A query to be restarted; `since` counts batches since the newest snapshots, by contender where they differ."""

    workload: str
    partitions: int
    since: int
    stock_since: int = -1
    repetitions: int = 5
    before: int = 20
    format_version: int = 1

    @property
    def name(self) -> str:
        """Unique in a plan."""
        return f"{self.workload}-{self.partitions}-after-{self.since}-v{self.format_version}"

    @property
    def stores(self) -> int:
        """Of all partitions."""
        return self.partitions * STORES[self.workload]

    def batches(self, contender: str) -> tuple[int, int]:
        """How many come before the newest snapshots, and how many after them: as many in all for every contender."""
        all_ = self.before + self.since
        since = self.stock_since if contender in STOCK and self.stock_since >= 0 else self.since
        return (0, 0) if contender == EMPTY else (all_ - since, since)

    def spec(self, contender: str, phase: str, root: Path, output: Path, delays: Delays, confs: dict[str, str]) -> Any:
        """As the JVM side reads it."""
        before, since = self.batches(contender)
        return {
            "phase": phase,
            "workload": self.workload,
            "partitions": self.partitions,
            "contender": OURS if contender == EMPTY else contender,
            "root": str(root),
            "output": str(output),
            "delays": delays.spec(),
            "stores": self.stores,
            "batchesBefore": before,
            "batchesSince": since,
            "confs": {FORMAT_VERSION: str(self.format_version), **confs},
        }


FULL = [
    Case("aggregation", 64, since=10),
    Case("join", 64, since=10),
    # Stock Spark takes a snapshot every ten versions: here at its best.
    Case("aggregation", 16, since=600, stock_since=0),
]
QUICK = [Case("aggregation", 8, since=5, repetitions=1, before=3)]


@dataclass
class Restarts:
    """What one contender's restarts took, and what they asked of storage."""

    millis: list[int] = field(default_factory=list)
    requests: list[dict[str, int]] = field(default_factory=list)

    def add(self, lines: Iterable[dict[str, Any]]) -> None:
        """Take in what one process has written."""
        asked: dict[str, int] = {}
        for line in lines:
            if line["kind"] == "recovery":
                self.millis.append(line["millis"])
            else:
                asked[line["request"]] = asked.get(line["request"], 0) + line["count"]
        self.requests.append(asked)

    def asked(self, request: str) -> float:
        """Take the median of such requests."""
        return statistics.median(asked.get(request, 0) for asked in self.requests)


@dataclass
class Recovered:
    """One case's outcome, as far as it has come."""

    case: Case
    contenders: dict[str, Restarts] = field(default_factory=lambda: {name: Restarts() for name in CONTENDERS})

    @property
    def can_be_compared(self) -> bool:
        """Whether there is a restart of every contender."""
        return all(of.millis for of in self.contenders.values())

    def median(self, contender: str) -> float:
        """Of the first batch, in milliseconds."""
        return statistics.median(self.contenders[contender].millis)

    def rows(self) -> list[list[str]]:
        """Make the table's rows."""
        return [
            [
                self.case.name,
                str(self.case.stores),
                NAMES[name],
                "-" if name == EMPTY else str(self.case.batches(name)[1]),
                *(f"{value:,.0f}" for value in (self.median(name), min(of.millis), max(of.millis))),
                *(f"{of.asked(request):g}" for request in ("GET", "HEAD", "LIST")),
            ]
            for name, of in self.contenders.items()
        ]

    def ratios(self) -> list[str]:
        """Compare with stock, and with a query that has no state yet."""
        ours = self.median(OURS)
        return [
            *(
                f"{self.case.name}: {ours / self.median(name):.2f} times {NAMES[name]}"
                for name in STOCK
                if name in self.contenders
            ),
            f"{self.case.name}: {ours - self.median(EMPTY):+,.0f} ms over {NAMES[EMPTY]}",
        ]


def measure(result: Recovered, options: argparse.Namespace, delays: Delays, progress: Progress, task: TaskID) -> None:
    """Make each contender's checkpoint, and restart from it in turn; each restart counts as soon as it has ended."""
    case = result.case
    with tempfile.TemporaryDirectory(prefix="dstl-bench-") as directory:
        work = Path(directory)
        root, saved = work / "checkpoints", work / "saved"

        def run(contender: str, phase: str) -> list[dict[str, Any]]:
            log, spec, output = WORK / f"recovery-{case.name}-{contender}.log", work / "spec.json", work / "out.jsonl"
            output.unlink(missing_ok=True)
            content = case.spec(contender, phase, root, output, delays, dict(options.conf))
            spec.write_text(json.dumps(content), encoding="utf-8")
            with child(command(MAIN, spec, directory, options.memory), log) as process:
                process.communicate()
                if process.returncode != 0:
                    raise BenchFailed(f"{case.name} ended with exit code {process.returncode}, its log is {log}")
            progress.advance(task)
            return [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []

        for name in (OURS, *STOCK):
            run(name, "prepare")
            shutil.copytree(root / name, saved / name)
        for repetition in range(case.repetitions):
            first = repetition % len(CONTENDERS)
            for name in CONTENDERS[first:] + CONTENDERS[:first]:
                shutil.rmtree(root, ignore_errors=True)
                if name != EMPTY:
                    shutil.copytree(saved / name, root / name)
                result.contenders[name].add(run(name, "recover"))


def markdown(results: Sequence[Recovered], delays: Delays) -> str:
    """Make a page with the table."""
    lines = [
        "# Figures of recovery",
        "",
        "Made by `make bench-recovery`; do not edit.",
        "",
        storage(delays),
        "",
        LEGEND,
    ]
    lines += ["", *markdown_table(HEADER, (row for result in results for row in result.rows()))]
    lines += ["", *(f"- {line}" for result in results for line in result.ratios())]
    return "\n".join(lines) + "\n"


def draw(results: Sequence[Recovered], path: Path) -> None:
    """Draw the medians, with the range of the repetitions."""
    figure, axes = pyplot.subplots(figsize=(8, 1 + 1.2 * len(results)))
    height = 0.8 / len(CONTENDERS)
    for place, name in enumerate(CONTENDERS):
        for number, result in enumerate(results):
            of = result.contenders[name]
            median = result.median(name)
            spread = [[(median - min(of.millis)) / 1000], [(max(of.millis) - median) / 1000]]
            colour = COLOURS.get(name, "#888888")
            label = NAMES[name] if number == 0 else None
            axes.barh(number + place * height, median / 1000, height, color=colour, label=label)
            axes.errorbar(median / 1000, number + place * height, xerr=spread, color="black")
    axes.set_yticks([number + 0.3 for number in range(len(results))], [result.case.name for result in results])
    axes.set_xlabel("first batch after a restart, s")
    axes.invert_yaxis()
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def main() -> int:
    """Run the benchmark; returns the exit code."""
    parser = argparse.ArgumentParser(description="Measure the first batch after a restart.")
    parser.add_argument("--quick", action="store_true", help="only show that it works, with small numbers")
    parser.add_argument("--only", action="append", metavar="TEXT", help="only cases whose name contains TEXT")
    parser.add_argument("--repetitions", type=int, default=None, help="restarts of each contender")
    parser.add_argument("--output", type=Path, default=WORK / "recovery", help="directory for figures and the chart")
    parser.add_argument("--memory", default="4g", help="heap of the process that is measured")
    parser.add_argument(
        "--conf", action="append", default=[], type=setting, help="a further SQL configuration, KEY=VALUE"
    )
    options = parser.parse_args()
    return exit_code(lambda: restart(options, wide_console()))


def restart(options: argparse.Namespace, console: Console) -> None:
    """Measure, show and save what was asked for."""
    options.output.mkdir(parents=True, exist_ok=True)
    delays = Delays()
    cases = [
        replace(case, repetitions=options.repetitions or case.repetitions)
        for case in (QUICK if options.quick else FULL)
        if not options.only or any(text in case.name for text in options.only)
    ]
    results = [Recovered(case) for case in cases]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=console) as progress:
            for result in results:
                case = result.case
                if not console.is_terminal:
                    console.print(f"{case.name}: {case.repetitions} restarts of {', '.join(CONTENDERS)}")
                processes = 1 + len(STOCK) + case.repetitions * len(CONTENDERS)
                measure(result, options, delays, progress, progress.add_task(case.name, total=processes))
    finally:
        # What was measured before an interruption, or a failure, is not lost with it.
        show([result for result in results if result.can_be_compared], options.output, delays, console)


def show(results: Sequence[Recovered], output: Path, delays: Delays, console: Console) -> None:
    """Print what was found, and save it."""
    if not results:
        console.print("there is nothing yet that could be compared")
        return
    content = [
        {"case": result.case.name, **{name: vars(of) for name, of in result.contenders.items()}} for result in results
    ]
    (output / "results.json").write_text(json.dumps(content), encoding="utf-8")
    (output / "recovery.md").write_text(markdown(results, delays), encoding="utf-8")
    table = Table(*HEADER, caption=LEGEND)
    for result in results:
        for row in result.rows():
            table.add_row(*row)
        table.add_section()
    console.print(table)
    for result in results:
        for line in result.ratios():
            console.print(line)
    draw(results, output / "recovery.svg")
    console.print(f"figures are in {output}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main())
