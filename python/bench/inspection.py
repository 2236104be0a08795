# SPDX-License-Identifier: Apache-2.0
"""Measures the commands that look at a checkpoint, and how fast `dstl state` reads a large state to Parquet.

The checkpoints are written for it, on a local disk. Commands are measured as whole processes, with the start of Python;
the time of processors depends less on other work on the machine than elapsed time does. The state is that of a count by
key in one partition: one store, which one processor reads.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet
from pyspark.sql import SparkSession
from runner import Benchmark, Figures, Measurement, Report, Result
from written_checkpoint import WrittenCheckpoint, aged

import spark_dstl
from spark_dstl.checkpoint.checkpoint import Checkpoint

COMMANDS = (
    ("log",),
    ("log", "--segments", "--format", "csv"),
    ("ls",),
    ("show",),
    ("verify",),
    ("verify", "--deep"),
)


def write(root: Path, entries: int, stores: int) -> Path:
    """Write a checkpoint: every tenth batch in a data file, and a snapshot of each store in the middle."""
    checkpoint = WrittenCheckpoint(root, partitions=stores).begin()
    for batch in range(entries):
        checkpoint.batch(batch, large=batch % 10 == 9, snapshots=batch == entries // 2, size=1000)
    return aged(root)


def seconds(command: Sequence[str]) -> tuple[float, float]:
    """Run a command; return how long it took, and how long processors worked for it."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, worked


def counted(directory: Path, rows: int) -> Path:
    """Run a query that leaves so many rows in its state; returns its checkpoint."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark_dstl.configure(builder.config("spark.sql.shuffle.partitions", "1")).getOrCreate()
    try:
        spark.range(rows).repartition(1).write.parquet(str(directory / "input"))
        counts = spark.readStream.schema("id LONG").parquet(str(directory / "input")).groupBy("id").count()
        checkpoint = directory / "checkpoint"
        writer = counts.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        return checkpoint
    finally:
        spark.stop()


def worked_seconds(process: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    # Fields 14 and 15 of proc(5): in user mode and in the kernel.
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_state(checkpoint: Checkpoint, target: Path, rows: int) -> dict[str, float]:
    """Read all of the state to a file, with a separate Java process; returns rows a second."""

    def worked() -> float:
        return time.process_time() + worked_seconds(checkpoint.gateway().pid)

    began = time.perf_counter()
    reader = checkpoint.state()
    first = reader.read_next_batch()
    streaming, working = time.perf_counter(), worked()
    with pyarrow.parquet.ParquetWriter(target, reader.schema) as writer:
        writer.write_batch(first)
        for batch in reader:
            writer.write_batch(batch)
    ended, after = time.perf_counter(), worked()
    written = pyarrow.parquet.ParquetFile(target).metadata.num_rows
    if written != rows:
        raise RuntimeError(f"{written} of {rows} rows were read")
    later = rows - first.num_rows
    return {
        "whole": rows / (ended - began),
        "streaming": later / (ended - streaming),
        "perProcessorSecond": later / (after - working),
    }


@dataclass(frozen=True)
class Case:
    """The commands on a checkpoint of so many entries of so many stores, or a state of so many rows."""

    name: str
    repeat: int
    entries: int = 0
    stores: int = 0
    rows: int = 0


class Inspect(Benchmark):
    """The commands that look at a checkpoint."""

    title = "Inspection"
    command = "make bench-inspect"

    def cases(self, options: argparse.Namespace) -> list[Case]:
        """Return both cases."""
        if options.quick:
            return [Case("commands", 1, entries=10, stores=10), Case("state", 1, rows=10_000)]
        return [Case("commands", 3, entries=100, stores=100), Case("state", 3, rows=1_000_000)]

    def measure(self, case: Case, run: Measurement) -> None:
        """Write a checkpoint and read it."""
        if case.rows:
            path = counted(run.directory, case.rows)
            for _ in range(case.repeat):
                with spark_dstl.open(str(path)) as checkpoint:
                    found = read_state(checkpoint, run.directory / "state.parquet", case.rows)
                run.result.processes.append(("dstl state", [found]))
            return
        root = write(run.directory / "checkpoint", case.entries, case.stores)
        for command in COMMANDS:
            whole = [sys.executable, "-m", "spark_dstl", command[0], str(root), *command[1:]]
            for _ in range(case.repeat):
                took, worked = seconds(whole)
                run.result.processes.append((f"dstl {' '.join(command)}", [{"seconds": took, "cpu": worked}]))

    def report(self, results: Sequence[Result]) -> Report:
        """Make a table for the commands, and one for the state."""
        return Report([state_table(result) if result.name == "state" else command_table(result) for result in results])


def command_table(result: Result) -> Figures:
    """Show the times of each command."""
    rows = []
    for command in dict.fromkeys(name for name, _ in result.processes):
        lines = [line for name, (line,) in result.processes if name == command]
        times, cpu = ([line[what] for line in lines] for what in ("seconds", "cpu"))
        rows.append([command, f"{statistics.median(times):.2f}", f"{max(times):.2f}", f"{statistics.median(cpu):.2f}"])
    legend = f"Seconds; {result.case['entries']} commit entries of {result.case['stores']} stores."
    return Figures("Commands", ("command", "median", "worst", "CPU"), legend, rows)


def state_table(result: Result) -> Figures:
    """Show rows a second."""
    lines = [line for _, (line,) in result.processes]
    values = [f"{statistics.median(line[name] for line in lines):,.0f}" for name in lines[0]]
    header = ("rows", "rows/s in all", "rows/s once rows come", "rows per processor second")
    legend = "Medians. In all: with the start of Java and the rebuild of the store."
    return Figures("State to Parquet", header, legend, [[f"{result.case['rows']:,}", *values]])
