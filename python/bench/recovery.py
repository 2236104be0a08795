"""Measures how long a query takes to come back, ours beside stock Spark's: after a restart, and after a loss.

The checkpoint of each contender is made once, on storage that takes no time, with snapshots of a known version. In
turn, and from the same files each time, a new process goes on from there on storage that takes its time like an object
store: it runs one more batch, or some, loses one of its two executor processes, and runs one more. A query without
state shows what of that is not recovery.

Prints a table; leaves figures as JSON, the table as a page and a chart. Exits with 0, 1 if a measurement failed, 130 on
Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyspark
from bench import WORK, BenchFailed, child, command, exit_code, setting, storage, terminated, wide_console
from plan import Delays
from recovery_plan import EMPTY, FULL, OURS, QUICK, Case
from recovery_report import HEADER, LEGEND, Recovered, draw, markdown
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

MAIN = "sparkdstl.bench.recovery.RecoveryMain"


def home(work: Path) -> dict[str, str]:
    """Make Spark's home in that directory, since executors have their directories there, and call it so."""
    made = work / "spark"
    made.mkdir(exist_ok=True)
    for name in ("bin", "jars"):
        if not (made / name).exists():
            (made / name).symlink_to(Path(pyspark.__file__).parent / name)
    return {"SPARK_HOME": str(made)}


def keep_executors_logs(work: Path, log: Path) -> None:
    """Append them to the driver's log; their own directories go."""
    with log.open("a", encoding="utf-8") as kept:
        for file in sorted((work / "spark").glob("work/*/*/stderr")):
            kept.write(f"\nexecutor {file.parent.name}:\n{file.read_text(encoding='utf-8', errors='replace')}")


def measure(result: Recovered, options: argparse.Namespace, progress: Progress, task: TaskID) -> None:
    """Make each contender's checkpoint, and go on from it in turn; each recovery counts as soon as it has ended."""
    case = result.case
    with tempfile.TemporaryDirectory(prefix="dstl-bench-") as directory:
        work = Path(directory)
        root, saved = work / "checkpoints", work / "saved"

        def run(contender: str, phase: str) -> list[dict[str, Any]]:
            log, spec, output = WORK / f"recovery-{case.name}-{contender}.log", work / "spec.json", work / "out.jsonl"
            output.unlink(missing_ok=True)
            content = case.spec(contender, phase, root, output, Delays(), dict(options.conf))
            spec.write_text(json.dumps(content), encoding="utf-8")
            call = command(MAIN, spec, directory, options.memory, case.master(phase))
            with child(call, log, home(work)) as process:
                process.communicate()
                if process.returncode != 0:
                    keep_executors_logs(work, log)
                    raise BenchFailed(f"{case.name} ended with exit code {process.returncode}, its log is {log}")
            progress.advance(task)
            return [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []

        for name in (OURS, *case.stock):
            run(name, "prepare")
            saved.mkdir(exist_ok=True)
            (root / name).rename(saved / name)
        for repetition in range(case.repetitions):
            first = repetition % len(case.contenders)
            for name in case.contenders[first:] + case.contenders[:first]:
                shutil.rmtree(root, ignore_errors=True)
                if name != EMPTY:
                    # The delayed file system writes no file in place: a link is as good as a copy.
                    shutil.copytree(saved / name, root / name, copy_function=os.link)
                # Nothing that was written before is on its way to the disk meanwhile.
                os.sync()
                result.contenders[name].add(run(name, case.measured_phase))


def main() -> int:
    """Run the benchmark; returns the exit code."""
    parser = argparse.ArgumentParser(description="Measure how long a query takes to come back.")
    parser.add_argument("--quick", action="store_true", help="only show that it works, with small numbers")
    parser.add_argument("--only", action="append", metavar="TEXT", help="only cases whose name contains TEXT")
    parser.add_argument("--repetitions", type=int, default=None, help="recoveries of each contender")
    parser.add_argument("--network", type=int, default=None, help="bytes per second of a process, for large-state")
    parser.add_argument("--output", type=Path, default=WORK / "recovery", help="directory for figures and the chart")
    parser.add_argument("--memory", default="4g", help="heap of the process that is measured, or of its driver")
    parser.add_argument(
        "--conf", action="append", default=[], type=setting, help="a further SQL configuration, KEY=VALUE"
    )
    options = parser.parse_args()
    return exit_code(lambda: recover(options, wide_console()))


def wanted(options: argparse.Namespace) -> list[Case]:
    """Choose the cases that were asked for."""
    return [
        replace(
            case,
            repetitions=options.repetitions or case.repetitions,
            network=options.network or case.network if case.network else 0,
        )
        for case in (QUICK if options.quick else FULL)
        if not options.only or any(text in case.name for text in options.only)
    ]


def recover(options: argparse.Namespace, console: Console) -> None:
    """Measure, show and save what was asked for."""
    options.output.mkdir(parents=True, exist_ok=True)
    results = [Recovered(case) for case in wanted(options)]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=console) as progress:
            for result in results:
                case = result.case
                if not console.is_terminal:
                    console.print(f"{case.name}: {case.repetitions} times {', '.join(case.contenders)}")
                processes = 1 + len(case.stock) + case.repetitions * len(case.contenders)
                measure(result, options, progress, progress.add_task(case.name, total=processes))
    finally:
        # What was measured before an interruption, or a failure, is not lost with it.
        show([result for result in results if result.can_be_compared], options.output, console)


def show(results: Sequence[Recovered], output: Path, console: Console) -> None:
    """Print what was found, and save it."""
    if not results:
        console.print("there is nothing yet that could be compared")
        return
    content = [
        {"case": result.case.name, **{name: vars(of) for name, of in result.contenders.items()}} for result in results
    ]
    (output / "results.json").write_text(json.dumps(content), encoding="utf-8")
    (output / "recovery.md").write_text(markdown(results, storage(Delays())), encoding="utf-8")
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
