"""Compares ways to keep the state of a streaming query, on storage that takes its time like an object store.

Runs Spark's RocksDB state store with its default file manager and with one that writes directly, spark-dstl, and a
floor that keeps no state durable, batch by batch in turn, on a file system that delays and counts every request.
Prints a table; leaves figures as JSON and charts as SVG.

Exits with 0, 1 if a measurement failed, 130 on Ctrl-C; cells that were done before are kept, and `--resume` goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import pyspark
from figures import Measured, read
from plan import FULL, QUICK, SLOTS, Cell, Delays, scaled, with_formats
from report import draw_batch_times, markdown, ratios, rows, table
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from spark_dstl.release import installed_line

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".build" / "bench"
LOG_CONFIG = ROOT / "conf" / "log4j2-quiet.properties"
MAIN = "sparkdstl.bench.CellMain"
RESULTS = "results.json"
TABLE_WIDTH = 240


class BenchFailed(Exception):
    """A process of the benchmark failed."""


def run_cell(cell: Cell, options: argparse.Namespace, delays: Delays, progress: Progress, task: TaskID) -> Measured:
    """Measure one cell in a process of its own, with checkpoints that are removed afterwards."""
    log = WORK / f"{cell.name}.log"
    with tempfile.TemporaryDirectory(prefix="dstl-bench-") as directory:
        output = WORK / f"{cell.name}.jsonl"
        spec = Path(directory) / "spec.json"
        root = str(Path(directory) / "checkpoints")
        content = cell.spec(root, str(output), delays, dict(options.conf), options.trace)
        spec.write_text(json.dumps(content), encoding="utf-8")
        with child(command(MAIN, spec, directory, options.memory), log) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("round "):
                    progress.update(task, completed=int(line.split()[1]) + cell.warmup + 1)
            if process.wait() != 0:
                raise BenchFailed(f"{cell.name} ended with exit code {process.returncode}, its log is {log}")
        return read(cell.group, cell.workload, cell.partitions, cell.format_version, output)


def command(main: str, spec: Path, directory: str, memory: str, master: str | None = None) -> list[str]:
    """Compose the call of spark-submit; without a master, all task slots are in the process itself."""
    kinds = ("", "-test", "-bench")
    line = installed_line().name
    jars = [str(path) for kind in kinds for path in ROOT.glob(f"target/spark-dstl{kind}-spark{line}_2.13-*.jar")]
    if len(jars) != 3:
        raise BenchFailed(f"the jars are not built: run `make bench SPARK={line}`")
    log_option = f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()}"
    confs = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": directory,
        "spark.driver.extraJavaOptions": log_option,
        "spark.executor.extraJavaOptions": log_option,
    }
    return [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *(
            "--master",
            master or f"local[{SLOTS}]",
            "--driver-memory",
            memory,
            "--class",
            main,
            "--jars",
            ",".join(jars[:2]),
        ),
        *(part for key, value in confs.items() for part in ("--conf", f"{key}={value}")),
        jars[2],
        str(spec),
    ]


@contextmanager
def child(
    arguments: list[str], log: Path, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Start a process in a group of its own, which ends with the block. It listens on the loopback interface alone."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            arguments,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def measure(cells: list[Cell], options: argparse.Namespace, delays: Delays, console: Console) -> list[Measured]:
    """Measure all cells that the results do not have yet; each is saved once it is done."""
    results = options.output / RESULTS
    done: dict[str, Measured] = {}
    if options.resume and results.exists():
        for value in json.loads(results.read_text(encoding="utf-8"))["cells"]:
            found = Measured.from_json(value)
            done[found.name] = found
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        for cell in cells:
            if cell.name in done:
                continue
            if not console.is_terminal:
                console.print(f"{cell.name}: {cell.rounds} rounds of {', '.join(cell.contenders)}")
            task = progress.add_task(cell.name, total=cell.batches)
            done[cell.name] = run_cell(cell, options, delays, progress, task)
            save(list(done.values()), delays, results)
    return list(done.values())


def fitting(cells: list[Cell], open_files: int, console: Console) -> list[Cell]:
    """Leave out, and say so, what would open more files than the process that measures may."""
    result = []
    for cell in cells:
        found = cell.within(open_files)
        if found:
            result.append(found)
        left_out = cell.contenders[len(found.contenders) :] if found else cell.contenders
        if left_out:
            console.print(
                f"{cell.name}: left out {', '.join(left_out)}, because a process may open {open_files} files here, "
                f"which is too few for so many stores; `ulimit -Hn` shows that limit"
            )
    return result


def save(cells: list[Measured], delays: Delays, path: Path) -> None:
    """Write the results in one step, so that an interruption leaves the old ones or the new ones."""
    value = {"delays": asdict(delays), "slots": SLOTS, "cells": [cell.to_json() for cell in cells]}
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)


def storage(delays: Delays) -> str:
    """Describe the storage in a sentence."""
    return (
        f"Storage: a request takes {delays.median_ms:g} ms in the median, {delays.p99_ms:g} ms at the 99th percentile, "
        f"{delays.tail_ratio:.1%} of all {delays.tail_ms:g} ms longer, and content is transferred at "
        f"{delays.bytes_per_second / 1e6:g} MB/s a request; seed {delays.seed}. "
        f"{SLOTS} task slots on {os.cpu_count()} processors."
    )


def show(cells: list[Measured], options: argparse.Namespace, delays: Delays, console: Console) -> None:
    """Print the table, write it as a page and draw the charts."""
    sections = [rows(cell) for cell in cells]
    console.print(table(sections))
    compared_to_stock = ratios(cells)
    for line in compared_to_stock:
        console.print(line)
    for cell in cells:
        for name, contender in cell.contenders.items():
            for path in contender.paths:
                console.print(f"{cell.name} {name}: {path}")
    page = markdown(sections, options.command, storage(delays), compared_to_stock)
    (options.output / "figures.md").write_text(page, encoding="utf-8")
    compared = [cell for cell in cells if cell.group == "compare"]
    if compared:
        draw_batch_times(compared, options.output / "batch-times.svg")
    console.print(f"figures and charts are in {options.output}")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Compare ways to keep the state of a streaming query.")
    parser.add_argument("--quick", action="store_true", help="the picture in five minutes")
    parser.add_argument("--only", action="append", metavar="TEXT", help="only cells whose name contains TEXT")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply the number of rounds by this")
    parser.add_argument(
        "--format-version",
        action="append",
        type=int,
        choices=(1, 2),
        help="of Spark's checkpoints; given twice, both are measured (without it, both where the plan says so)",
    )
    parser.add_argument("--trace", action="store_true", help="print the paths of the last batch's requests")
    parser.add_argument("--resume", action="store_true", help="keep the cells that the output has already")
    parser.add_argument("--report", action="store_true", help="measure nothing, show what the output has")
    parser.add_argument("--output", type=Path, default=None, help="directory for figures and charts")
    parser.add_argument("--memory", default="4g", help="heap of the process that is measured")
    parser.add_argument(
        "--conf", action="append", default=[], type=setting, help="a further SQL configuration, KEY=VALUE"
    )
    default = Delays()
    parser.add_argument("--median-ms", type=float, default=default.median_ms, help="median request, in ms")
    parser.add_argument("--p99-ms", type=float, default=default.p99_ms, help="99th percentile of requests, in ms")
    parser.add_argument("--tail-ratio", type=float, default=default.tail_ratio, help="share of very slow requests")
    parser.add_argument("--tail-ms", type=float, default=default.tail_ms, help="how much longer these take, in ms")
    parser.add_argument("--bytes-per-second", type=int, default=default.bytes_per_second, help="of one request; 0: any")
    parser.add_argument("--seed", type=int, default=default.seed, help="of the delays")
    options = parser.parse_args()
    options.command = "make bench-quick" if options.quick else "make bench"
    options.output = options.output or WORK / ("quick" if options.quick else "full")
    return options


def setting(text: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is not KEY=VALUE")
    return key, value


def main() -> int:
    """Run the benchmark; returns the exit code."""
    options = arguments()
    console = wide_console()
    options.output.mkdir(parents=True, exist_ok=True)
    delays = Delays(
        options.median_ms,
        options.p99_ms,
        options.tail_ratio,
        options.tail_ms,
        options.bytes_per_second,
        options.seed,
    )
    versions = options.format_version or ([1] if options.quick else [])
    cells = with_formats(scaled(QUICK if options.quick else FULL, options.scale), versions)
    wanted = [cell for cell in cells if not options.only or any(text in cell.name for text in options.only)]
    if options.report:
        wanted, options.resume = [], True
    # Java raises its soft limit to the hard one.
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if open_files != resource.RLIM_INFINITY:
        wanted = fitting(wanted, open_files, console)
    return exit_code(
        lambda: show(measure(wanted, options, delays, console), options, delays, console),
        "interrupted; --resume goes on with what is done",
    )


def wide_console() -> Console:
    """Make a console that is wide enough for the tables also where there is no terminal."""
    return Console() if sys.stdout.isatty() else Console(width=TABLE_WIDTH)


def exit_code(run: Callable[[], None], interrupted: str = "interrupted") -> int:
    """Run a benchmark, and say in a line why it ended early if it did."""
    try:
        run()
    except BenchFailed as failure:
        print(f"benchmark failed: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{interrupted}", file=sys.stderr)
        return 130
    return 0


def terminated(number: int, _: FrameType | None) -> None:
    """Let SIGTERM unwind the stack, so that the process that measures is stopped and its files are removed."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main())
