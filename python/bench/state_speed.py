"""Measures how fast `dstl state` reads a large state to Parquet, on a checkpoint that a query writes for it.

    python python/bench/state_speed.py [--rows 1000000] [--repeat 3]

A query counts by that many keys, in one partition, so that one processor is asked for one store. Prints, as medians:
rows a second of the whole, with the start of the Java process and the rebuild of the store; rows a second once rows
come; and rows for each second that processors then worked, in both processes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet
from pyspark.sql import SparkSession

import spark_dstl
from spark_dstl.checkpoint.checkpoint import Checkpoint


@dataclass(frozen=True)
class Measured:
    """Rows a second: of the whole, after the first batch of rows, and by second of processors' work after it."""

    whole: float
    streaming: float
    per_processor_second: float


def write(directory: Path, rows: int) -> Path:
    """Run a query to its end that leaves so many rows in its state; returns its checkpoint."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark_dstl.configure(builder.config("spark.sql.shuffle.partitions", "1")).getOrCreate()
    try:
        spark.range(rows).repartition(1).write.parquet(str(directory / "input"))
        counted = spark.readStream.schema("id LONG").parquet(str(directory / "input")).groupBy("id").count()
        checkpoint = directory / "checkpoint"
        writer = counted.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        return checkpoint
    finally:
        spark.stop()


def worked_seconds(process: int) -> float:
    """How long processors have worked for a process."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    # Fields 14 and 15 of proc(5): in user mode and in the kernel.
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(checkpoint: Checkpoint, target: Path, rows: int) -> Measured:
    """Read all of the state to a file, once, with a Java process of its own."""

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
    return Measured(rows / (ended - began), later / (ended - streaming), later / (after - working))


def main() -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dstl-state-") as directory:
        path = write(Path(directory), options.rows)
        found = []
        for _ in range(options.repeat):
            with spark_dstl.open(str(path)) as checkpoint:
                found.append(measure(checkpoint, Path(directory, "state.parquet"), options.rows))

    def median(of: Callable[[Measured], float]) -> str:
        return f"{statistics.median(map(of, found)):,.0f}"

    print(f"{options.rows:,} rows of state to Parquet, medians of {options.repeat}:")
    print(f"{median(lambda one: one.whole)} rows/s with the start of Java and the rebuild of the store")
    print(f"{median(lambda one: one.streaming)} rows/s once rows come")
    print(f"{median(lambda one: one.per_processor_second)} rows for each second that processors worked meanwhile")


if __name__ == "__main__":
    main()
