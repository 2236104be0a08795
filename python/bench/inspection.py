# SPDX-License-Identifier: Apache-2.0
"""Measures the commands that look at a checkpoint, reads of a large state to Parquet, and lookups of keys.

The checkpoints are written for it, on a local disk. Commands are measured as whole processes, with the start of Python;
the time of processors depends less on other work on the machine than elapsed time does. The state is that of a count by
key in one partition: one store, which one processor reads.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet
from pyarrow import flight
from pyspark.sql import SparkSession
from runner import Benchmark, Figures, Measurement, Report, Result
from written_checkpoint import WrittenCheckpoint, aged

import spark_dstl
from spark_dstl.checkpoint.checkpoint import Checkpoint
from spark_dstl.serving.server import StateServer

COMMANDS = (
    ("log",),
    ("log", "--segments", "--format", "csv"),
    ("ls",),
    ("show",),
    ("verify",),
    ("verify", "--deep"),
)
KEYS_AT_A_TIME = 100


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


def counted(directory: Path, rows: int, partitions: int = 1) -> Path:
    """Run a query that leaves so many rows in its state; returns its checkpoint."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark_dstl.configure(builder.config("spark.sql.shuffle.partitions", str(partitions))).getOrCreate()
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


def look_up(checkpoint: Checkpoint, rows: int, lookups: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Look random keys up, in this process and over Arrow Flight on a loopback address: single keys, and several."""
    with closing(StateServer(checkpoint, "grpc://127.0.0.1:0")) as server:

        def in_process(keys: list[int]) -> list[Any]:
            return [found.value["count"] for found in server.followed.get_many(keys)]

        def over_flight(client: flight.FlightClient, keys: list[int]) -> list[Any]:
            ticket = flight.Ticket(json.dumps({"command": "get", "keys": keys}))
            return [value["count"] for value in client.do_get(ticket).read_all()["value"].to_pylist()]

        with flight.connect(f"grpc://127.0.0.1:{server.port}") as client:
            ways = (("in the process", in_process), ("over Arrow Flight", partial(over_flight, client)))
            # As many requests would take minutes.
            numbers = ((1, lookups), (KEYS_AT_A_TIME, lookups // 10))
            for (name, look), (at_a_time, requests) in itertools.product(ways, numbers):
                chance = random.Random(0)
                for _ in range(requests // 4):
                    look([0] * at_a_time)
                taken = []
                before = time.process_time() + worked_seconds(checkpoint.gateway().pid)
                for _ in range(requests):
                    keys = chance.choices(range(rows), k=at_a_time)
                    began = time.perf_counter()
                    if look(keys) != [1] * at_a_time:
                        raise RuntimeError(f"one of {keys} was not found")
                    taken.append(time.perf_counter() - began)
                looked_up = at_a_time * requests
                cpu = time.process_time() + worked_seconds(checkpoint.gateway().pid) - before
                p50, p99 = (statistics.quantiles(taken, n=100)[at - 1] * 1000 for at in (50, 99))
                several = "" if at_a_time == 1 else f", {at_a_time} keys at a time"
                figures = {"rate": looked_up / sum(taken), "perCpu": looked_up / cpu, "p50": p50, "p99": p99}
                yield f"{name}{several}", figures


@dataclass(frozen=True)
class Case:
    """The commands on a checkpoint of so many entries of so many stores, or a state of so many rows."""

    name: str
    repeat: int
    entries: int = 0
    stores: int = 0
    rows: int = 0
    lookups: int = 0


class Inspect(Benchmark):
    title = "Inspection"
    command = "make bench-inspect"

    def cases(self, options: argparse.Namespace) -> list[Case]:
        if options.quick:
            return [
                Case("commands", 1, entries=10, stores=10),
                Case("state", 1, rows=10_000),
                Case("lookups", 1, stores=4, rows=1000, lookups=100),
            ]
        return [
            Case("commands", 3, entries=100, stores=100),
            Case("state", 3, rows=1_000_000),
            Case("lookups", 3, stores=64, rows=100_000, lookups=10_000),
        ]

    def measure(self, case: Case, run: Measurement) -> None:
        """Write a checkpoint and read it."""
        if case.lookups:
            path = counted(run.directory, case.rows, case.stores)
            for _ in range(case.repeat):
                with spark_dstl.open(str(path)) as checkpoint:
                    for name, figures in look_up(checkpoint, case.rows, case.lookups):
                        run.result.processes.append((name, [figures]))
            return
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
        tables = {"commands": command_table, "state": state_table, "lookups": lookup_table}
        return Report([tables[result.name](result) for result in results])


def command_table(result: Result) -> Figures:
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


def lookup_table(result: Result) -> Figures:
    """Show lookups a second and their times, for each way."""
    rows = []
    for way in dict.fromkeys(name for name, _ in result.processes):
        lines = [line for name, (line,) in result.processes if name == way]
        rate, cpu, p50, p99 = (statistics.median(line[of] for line in lines) for of in ("rate", "perCpu", "p50", "p99"))
        rows.append([way, f"{rate:,.0f}", f"{cpu:,.0f}", f"{p50:.2f}", f"{p99:.2f}"])
    header = ("lookups", "a second", "per processor second", "p50, ms", "p99, ms")
    case = result.case
    legend = f"{case['rows']:,} keys in {case['stores']} partitions, one client. Processor time of client and copy."
    return Figures("Lookups", header, legend, rows)
