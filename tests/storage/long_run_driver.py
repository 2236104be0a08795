"""A query that goes on for as long as it is told, and says now and then what its driver holds.

`long_run_driver.py <spec.json>`: the specification has `confs`, `checkpoint`, `seconds` and `every`, how often a sample
is taken, in seconds; `samples` and `result` are where samples, a line of JSON each, and the result are left.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

ROWS = 500
KEYS = 20_000
# Neighbours do not share a store, nor a part of it.
STRIDE = 7919
# So much that cannot be compressed comes with each value that snapshots of all keys are uploaded in parts.
HASHES = 8

# Of each key how many values it had, their sum, and the note on the last.
Totals = dict[int, tuple[int, int, str]]


def main() -> None:
    """Run the query, and leave what its sink and its state hold at the end."""
    spec: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    builder: SparkSession.Builder = SparkSession.builder
    for key, value in spec["confs"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    sink = Sink()
    query = (
        totals(spark)
        .writeStream.outputMode("update")
        .option("checkpointLocation", spec["checkpoint"])
        .foreachBatch(sink.write)
        .trigger(processingTime="1 second")
        .start()
    )
    began = time.monotonic()
    passed = 0
    with Path(spec["samples"]).open("w", encoding="utf-8") as samples:
        while passed < spec["seconds"]:
            if query.awaitTermination(spec["every"]) or os.getppid() != spec["parent"]:
                sys.exit("the query ended by itself, or the test that started it is gone")
            passed = round(time.monotonic() - began)
            samples.write(json.dumps({"seconds": passed, "batches": sink.batches, **held(spark)}) + "\n")
            samples.flush()
    query.stop()
    # Key, count, sum and note; behind these, the value that `max_by` kept the note of.
    rows = spark.read.format("statestore").load(spec["checkpoint"]).select("key.key", "value.*").collect()
    in_sink = [(key, *kept) for key, kept in sink.rows.items()]
    result = {"batches": sink.batches, "sink": in_sink, "state": [list(row)[:4] for row in rows]}
    Path(spec["result"]).write_text(json.dumps(result), encoding="utf-8")
    spark.stop()


class Sink:
    """What the newest batches wrote of each key, and how many batches there were."""

    def __init__(self) -> None:
        self.rows: Totals = {}
        self.batches = 0

    def write(self, rows: DataFrame, batch: int) -> None:
        """Take the result of a batch, which may be one that was taken before."""
        self.rows.update({row.key: (row["count"], row["sum"], row.note) for row in rows.collect()})
        self.batches = batch + 1


def totals(spark: SparkSession) -> DataFrame:
    """Count, sum and the note on the last value of each key; a batch has `ROWS` values, which follow each other."""
    values = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load().select("value")
    noted = values.select("value", (sf.col("value") * STRIDE % KEYS).alias("key"), note_column().alias("note"))
    return noted.groupBy("key").agg(
        sf.count("*").alias("count"), sf.sum("value").alias("sum"), sf.max_by("note", "value").alias("note")
    )


def note_column() -> Any:
    """As `note` has it."""
    return sf.concat(*(sf.sha2(sf.concat(sf.col("value").cast("string"), sf.lit(f".{n}")), 512) for n in range(HASHES)))


def note(value: int) -> str:
    """Text that cannot be compressed to less than half of it, and is another for each value."""
    return "".join(hashlib.sha512(f"{value}.{n}".encode()).hexdigest() for n in range(HASHES))


def expected(batches: int) -> Totals:
    """What there must be after so many batches."""
    values = range(batches * ROWS)
    counts: Counter[int] = Counter()
    sums: Counter[int] = Counter()
    last: dict[int, int] = {}
    for value in values:
        key = value * STRIDE % KEYS
        counts[key] += 1
        sums[key] += value
        last[key] = value
    return {key: (count, sums[key], note(last[key])) for key, count in counts.items()}


def held(spark: SparkSession) -> dict[str, int]:
    """Threads of the driver's JVM, its heap once it has been collected, and the memory of its process, in bytes."""
    # Python lets go of what it holds in the JVM, such as the data frames of batches, when it collects cycles: seldom.
    gc.collect()
    jvm: Any = spark._jvm
    management = jvm.java.lang.management.ManagementFactory
    jvm.java.lang.System.gc()
    threads = management.getThreadMXBean().getThreadCount()
    heap = management.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    status = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/status").read_text(encoding="utf-8")
    resident = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    assert resident is not None
    return {"threads": threads, "heap": heap, "resident": 1024 * int(resident[1])}


def parsed(lines: Iterator[str]) -> Iterator[dict[str, int]]:
    """The samples that have been taken so far; the last line may still be incomplete."""
    for line in lines:
        if line.endswith("\n"):
            yield json.loads(line)


if __name__ == "__main__":
    main()
