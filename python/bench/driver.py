"""Measures the log's side of a driver alone: what tasks seal comes from a generator, and no Spark job runs.

Prints tables; leaves figures as JSON and the tables as a page. Exits with 0, 1 if a measurement failed, 130 on Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import WORK, BenchFailed, child, command, exit_code, terminated, wide_console
from report import markdown_table
from rich.console import Console
from rich.table import Table

MAIN = "sparkdstl.bench.driver.DriverMain"
PARTS = ("direct", "endpoint", "memory", "snapshots")
STORES_PER_TASK = 4
# Bytes of each store's changes: within the budget of a commit entry, and beyond.
SIZES = (100, 400, 4000)
# Of a small store, as Spark packs what is no SST file.
SNAPSHOT_BYTES = 3_800
# Tasks, for the question how many stores a driver can take.
GROWTH = (2_500, 10_000, 40_000)

Figures = Mapping[str, Any]
Column = tuple[str, Callable[[Figures], str]]


def case(part: str, tasks: int, size: int, **more: int) -> dict[str, Any]:
    """Describe a case as the JVM side reads it."""
    return {
        "part": part,
        "tasks": tasks,
        "storesPerTask": STORES_PER_TASK,
        "bytesPerStore": size,
        "formatVersion": 1,
        "inFlight": 1000,
        "batches": 600,
        "snapshotBytes": SNAPSHOT_BYTES,
        **more,
    }


def cases(quick: bool) -> list[dict[str, Any]]:
    """List all cases; quick ones only show that everything works."""
    if quick:
        return [
            *(case(part, 200, size, inFlight=50) for part in ("direct", "endpoint") for size in (100, 40_000)),
            case("endpoint", 200, 100, inFlight=50, formatVersion=2),
            case("memory", 100, 100, batches=102),
            case("snapshots", 100, 100),
        ]
    sizes = [case(part, 10_000, size) for part in ("direct", "endpoint") for size in SIZES]
    growth = [case("endpoint", tasks, 100, formatVersion=version) for version in (1, 2) for tasks in GROWTH]
    # 4 kB a store goes to data files, 100 B into the entry.
    return [
        *sizes,
        *(one for one in growth if one not in sizes),
        case("memory", 10_000, 4000),
        case("memory", 10_000, 100),
        *(case("snapshots", tasks, 100) for tasks in GROWTH),
    ]


def count(name: str) -> Callable[[Figures], str]:
    """Show a number."""
    return lambda figures: f"{figures[name]:,.0f}"


def megabytes(name: str) -> Callable[[Figures], str]:
    """Show bytes in MB."""
    return lambda figures: f"{figures[name] / 1e6:,.1f}"


def times(name: str) -> Callable[[Figures], str]:
    """Show the median, the 99th percentile and the maximum."""
    return lambda figures: " / ".join(f"{figures[name][of]:,.1f}" for of in ("p50", "p99", "max"))


SHAPE: tuple[Column, ...] = (
    ("tasks", count("tasks")),
    ("stores", count("stores")),
    ("bytes a store", count("bytesPerStore")),
    ("inline", lambda figures: f"{figures['inlineStoresPerTask']} of {STORES_PER_TASK}"),
    ("format", lambda figures: f"v{figures['formatVersion']}"),
)
COLUMNS: dict[str, tuple[Column, ...]] = {
    "direct": (
        *SHAPE,
        ("take", count("takeMs")),
        ("CPU", count("cpuMs")),
        ("commit", count("commitMs")),
        ("commit CPU", count("commitCpuMs")),
        ("encode", count("encodeMs")),
        ("peak heap, MB", megabytes("peakHeap")),
    ),
    "endpoint": (
        *SHAPE,
        ("in flight", count("inFlight")),
        ("take", count("takeMs")),
        ("CPU", count("cpuMs")),
        ("ask", times("ask")),
        ("commit", count("commitMs")),
        ("commit CPU", count("commitCpuMs")),
        ("encode", count("encodeMs")),
        ("held, MB", megabytes("heldHeap")),
        ("peak heap, MB", megabytes("peakHeap")),
        ("ping, idle", times("idlePing")),
        ("ping", times("ping")),
    ),
    "memory": (
        *SHAPE,
        ("batches", count("batches")),
        ("before, MB", megabytes("before")),
        ("sealed, MB", megabytes("sealed")),
        ("committed, MB", megabytes("committed")),
    ),
    "snapshots": (
        *SHAPE,
        ("batches", count("batches")),
        ("named by one", count("namedByOne")),
        ("sent, MB", megabytes("carriedBytes")),
        ("take, first", count("firstTakeMs")),
        ("take, last", count("lastTakeMs")),
        ("commit", count("commitMs")),
        ("peak heap, MB", megabytes("peakHeap")),
    ),
}
LEGENDS = {
    "direct": (
        "One thread decodes, hands in and answers all messages of a batch, word of uploads included. Times in ms; "
        "commit: from Spark's closing the entry until it is written, on storage that takes no time; encode: of that "
        "entry, all stores inline."
    ),
    "endpoint": (
        "Another process on the same machine sends through Spark's RPC. Take: from the first message until the last "
        "answer; CPU: of the driver's process meanwhile; ask: one message and its answer, and ping: an unrelated "
        "endpoint of the same driver asked every 10 ms, each p50 / p99 / max; times in ms. What is not inline is "
        "reported when the barrier asks for it, so it is part of the commit. Held: live heap more than before."
    ),
    "memory": (
        "Live heap after so many batches, none of which is deleted, more than before the run began. Sealed: with the "
        "newest batch's seals not yet committed; committed: with all committed."
    ),
    "snapshots": (
        "All stores finish a snapshot at once, and each seal carries what the driver has not taken. Batches: until "
        "commit entries hold all; sent: what seals carried in them; take: of one thread, all seals of the first of "
        "these batches, and of the last; commit: the median; times in ms."
    ),
}


def shown(part: str, results: Iterable[Figures]) -> tuple[list[str], list[list[str]]]:
    """Make the header and the rows of a part's table."""
    columns = COLUMNS[part]
    return [name for name, _ in columns], [[show(figures) for _, show in columns] for figures in results]


def markdown(results: Sequence[Figures]) -> str:
    """Make a page with a table for each part."""
    lines = [
        "# Figures of the driver's side",
        "",
        f"Made by `make bench-driver` on {os.cpu_count()} processors; do not edit.",
    ]
    for part in PARTS:
        header, rows = shown(part, (figures for figures in results if figures["part"] == part))
        if rows:
            lines += ["", f"## {part}", "", LEGENDS[part], ""]
            lines += markdown_table(header, rows)
    return "\n".join(lines) + "\n"


def measure(wanted: list[dict[str, Any]], output: Path, memory: str, console: Console) -> list[dict[str, Any]]:
    """Run each part in a process of its own."""
    results: list[dict[str, Any]] = []
    for part in PARTS:
        own = [one for one in wanted if one["part"] == part]
        if not own:
            continue
        console.print(f"{part}: {len(own)} cases")
        log, found = output / f"{part}.log", output / f"{part}.jsonl"
        with tempfile.TemporaryDirectory(prefix="dstl-bench-") as directory:
            spec = Path(directory) / "spec.json"
            spec.write_text(json.dumps({"output": str(found), "cases": own}), encoding="utf-8")
            with child(command(MAIN, spec, directory, memory), log) as process:
                process.communicate()
                if process.returncode != 0:
                    raise BenchFailed(f"{part} ended with exit code {process.returncode}, its log is {log}")
        results += [json.loads(line) for line in found.read_text(encoding="utf-8").splitlines()]
    return results


def main() -> int:
    """Run the benchmark; returns the exit code."""
    parser = argparse.ArgumentParser(description="Measure the log's side of a driver alone.")
    parser.add_argument("--quick", action="store_true", help="only show that it works, with small numbers")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part")
    parser.add_argument("--output", type=Path, default=WORK / "driver", help="directory for figures")
    parser.add_argument("--memory", default="2g", help="heap of the driver's process, and of the sender's")
    options = parser.parse_args()
    return exit_code(lambda: run(options, wide_console()))


def run(options: argparse.Namespace, console: Console) -> None:
    """Measure, show and save what was asked for."""
    options.output.mkdir(parents=True, exist_ok=True)
    wanted = [one for one in cases(options.quick) if not options.part or one["part"] in options.part]
    results = measure(wanted, options.output, options.memory, console)
    (options.output / "results.json").write_text(json.dumps(results), encoding="utf-8")
    (options.output / "driver.md").write_text(markdown(results), encoding="utf-8")
    for part in PARTS:
        header, rows = shown(part, (figures for figures in results if figures["part"] == part))
        if rows:
            table = Table(*header, title=part, caption=LEGENDS[part])
            for row in rows:
                table.add_row(*row)
            console.print(table)
    console.print(f"figures are in {options.output}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main())
