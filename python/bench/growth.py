"""Measures what grows with the number of batches, ours beside stock Spark's: objects, bytes, heap and requests.

Each contender runs the same batches in a process of its own, on storage that takes no time.

Prints tables; leaves figures as JSON, the tables as a page and a chart of each case. Exits with 0, 1 if a measurement
failed, 130 on Ctrl-C; what was measured until then is kept.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench import WORK, BenchFailed, child, command, exit_code, setting, terminated, wide_console
from charts import Panel, line_chart
from growth_figures import (
    REQUESTS_HEADER,
    REQUESTS_LEGEND,
    STORED_HEADER,
    STORED_LEGEND,
    Grown,
    Sample,
    all_bytes,
    all_objects,
    read,
)
from growth_plan import FULL, QUICK, Case
from plan import AGAINST_STOCK
from report import LABELS, markdown_table
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

MAIN = "sparkdstl.bench.growth.GrowthMain"


def written(case: Case, contender: str, directory: Path) -> Path:
    """Name the file of what a run has measured."""
    return directory / f"{case.name}-{contender}.jsonl"


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
    panels = []
    for title, figure in figures:
        points = {
            name: [(sample.batches, value) for sample in curve.samples if (value := figure(sample)) is not None]
            for name, curve in result.measured.items()
        }
        panels.append(Panel(title, "batches", {name: found for name, found in points.items() if found}))
    path.write_text(line_chart(panels, LABELS), encoding="utf-8")


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
    failures: list[str] = []
    try:
        with Progress(*columns, console=console) as progress:
            for result in results:
                for name in result.curves:
                    what = f"{result.case.name}, {LABELS[name]}"
                    if not console.is_terminal:
                        console.print(f"{what}: {result.case.batches} batches")
                    try:
                        measure(result, name, options, progress, progress.add_task(what, total=result.case.batches))
                    except BenchFailed as failure:
                        # What comes after it takes an hour, and is of use all the same.
                        console.print(str(failure))
                        failures.append(str(failure))
    finally:
        # What was measured before an interruption, or a failure, is not lost with it.
        show([result for result in results if result.measured], options.output, console)
    if failures:
        raise BenchFailed("; ".join(failures))


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
