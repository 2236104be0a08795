# SPDX-License-Identifier: Apache-2.0
"""Runs one benchmark: `compare`, `driver`, `recovery`, `growth`, `inspect` or `realtime`; see docs/benchmark.md.

Prints tables, and leaves `results.json`, the tables as `figures.md` and charts below `.build/bench`. Exits with 0, with
1 if a measurement failed and with 130 on Ctrl-C. Results that were there before are kept; `--resume` continues.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from compare import Compare
from driver import Driver
from growth import Growth
from inspection import Inspect
from realtime import RealTime
from recovery import Recovery
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from runner import WORK, BenchFailed, Benchmark, Measurement, Result, save, saved, unwind_on_sigterm

BENCHMARKS: dict[str, Benchmark] = {
    "compare": Compare(),
    "driver": Driver(),
    "recovery": Recovery(),
    "growth": Growth(),
    "inspect": Inspect(),
    "realtime": RealTime(),
}
TABLE_WIDTH = 240


def parser_of(name: str, benchmark: Benchmark) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"bench.py {name}", description=f"{benchmark.title}.")
    parser.add_argument("--quick", action="store_true", help="few batches: minutes")
    parser.add_argument("--only", "--part", action="append", metavar="TEXT", help="only cases whose name contains TEXT")
    parser.add_argument("--resume", action="store_true", help="keep the cases that the output has already")
    parser.add_argument("--report", action="store_true", help="measure nothing, show what the output has")
    parser.add_argument("--output", type=Path, help="directory for results, tables and charts")
    benchmark.options(parser)
    return parser


def is_wanted(name: str, options: argparse.Namespace) -> bool:
    """Return whether the options ask for that case."""
    return not options.only or any(text in name for text in options.only)


def measure(name: str, benchmark: Benchmark, options: argparse.Namespace, console: Console) -> list[str]:
    """Measure all cases that the results do not have yet; returns failures. Each case is saved once it has ended."""
    path = options.output / "results.json"
    done = saved(path) if options.resume else {}
    failures = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        for case in benchmark.cases(options):
            if not is_wanted(case.name, options) or (case.name in done and done[case.name].is_complete):
                continue
            result = done[case.name] = Result(asdict(case), case.name)
            try:
                with tempfile.TemporaryDirectory(prefix="dstl-bench-") as directory:
                    benchmark.measure(case, Measurement(result, options, progress, Path(directory), benchmark.memory))
                result.is_complete = True
            except BenchFailed as failure:
                # The cases after it are measured all the same: they take hours.
                console.print(str(failure))
                failures.append(str(failure))
            finally:
                save(done.values(), name, path)
    return failures


def show(benchmark: Benchmark, options: argparse.Namespace, console: Console) -> None:
    """Print what the output has, as tables, and write the page and the charts."""
    found = saved(options.output / "results.json").values()
    results = [result for result in found if result.processes and is_wanted(result.name, options)]
    if not results:
        console.print("there are no results yet")
        return
    report = benchmark.report(results)
    for file, chart in report.charts.items():
        chart.savefig(options.output / file, dpi=150)
    about = [
        f"Made by `{benchmark.command}`; do not edit.",
        *dict.fromkeys(result.storage for result in results if result.storage),
    ]
    page = report.markdown(benchmark.title, about)
    (options.output / "figures.md").write_text(page, encoding="utf-8")
    console.print(Markdown(page))
    console.print(f"results, tables and charts are in {options.output}")


def main(arguments: list[str]) -> int:
    """Run the benchmark that the first argument names; returns the exit code."""
    if not arguments or arguments[0] not in BENCHMARKS:
        print(f"usage: bench.py {{{','.join(BENCHMARKS)}}} [OPTIONS]", file=sys.stderr)
        return 2
    name, benchmark = arguments[0], BENCHMARKS[arguments[0]]
    options = parser_of(name, benchmark).parse_args(arguments[1:])
    options.output = options.output or WORK / (f"{name}-quick" if options.quick else name)
    options.output.mkdir(parents=True, exist_ok=True)
    console = Console() if sys.stdout.isatty() else Console(width=TABLE_WIDTH)
    try:
        try:
            failures = [] if options.report else measure(name, benchmark, options, console)
        finally:
            show(benchmark, options, console)
    except KeyboardInterrupt:
        print("\ninterrupted; what was measured is kept, and --resume continues", file=sys.stderr)
        return 130
    for failure in failures:
        print(f"benchmark failed: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    unwind_on_sigterm()
    sys.exit(main(sys.argv[1:]))
