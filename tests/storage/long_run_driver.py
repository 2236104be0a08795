# SPDX-License-Identifier: Apache-2.0
"""A query that runs for a given time and samples the memory of its driver.

`long_run_driver.py <spec.json>`: the specification has `confs`, `checkpoint`, `seconds` and `every`, the seconds
between two samples; `samples` is the file of samples, a line of JSON each, and `result` that of the result.
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
# Spreads successive values over the stores.
STRIDE = 7919
# Incompressible content of each value: enough for snapshots that are uploaded in parts.
HASHES = 8

# By key: the number of values, their sum, and the note on the last.
Totals = dict[int, tuple[int, int, str]]


def main() -> None:
    """Run the query, and write the final content of sink and state."""
    spec: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    spark: SparkSession = SparkSession.builder.config(map=spec["confs"]).getOrCreate()
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
    # Key, count, sum and note, and the value of the note that `max_by` keeps.
    rows = spark.read.format("statestore").load(spec["checkpoint"]).select("key.key", "value.*").collect()
    in_sink = [(key, *kept) for key, kept in sink.rows.items()]
    result = {"batches": sink.batches, "sink": in_sink, "state": [list(row)[:4] for row in rows]}
    Path(spec["result"]).write_text(json.dumps(result), encoding="utf-8")
    spark.stop()


class Sink:
    """The newest row of each key, and the number of batches."""

    def __init__(self) -> None:
        self.rows: Totals = {}
        self.batches = 0

    def write(self, rows: DataFrame, batch: int) -> None:
        """Add the result of a batch, which may be a repeated one."""
        self.rows.update({row.key: (row["count"], row["sum"], row.note) for row in rows.collect()})
        self.batches = batch + 1


def totals(spark: SparkSession) -> DataFrame:
    """Return count, sum and the note on the last value of each key; a batch has `ROWS` successive values."""
    values = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load().select("value")
    noted = values.select("value", (sf.col("value") * STRIDE % KEYS).alias("key"), note_column().alias("note"))
    return noted.groupBy("key").agg(
        sf.count("*").alias("count"), sf.sum("value").alias("sum"), sf.max_by("note", "value").alias("note")
    )


def note_column() -> Any:
    """Return `note` as a column."""
    return sf.concat(*(sf.sha2(sf.concat(sf.col("value").cast("string"), sf.lit(f".{n}")), 512) for n in range(HASHES)))


def note(value: int) -> str:
    """Return a text, different for each value, that compresses to half its size at best."""
    return "".join(hashlib.sha512(f"{value}.{n}".encode()).hexdigest() for n in range(HASHES))


def expected(batches: int) -> Totals:
    """Return the expected result after so many batches."""
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
    """Return the threads of the driver's JVM, its heap after a collection, and the memory of its process, in bytes."""
    # Python releases its objects in the JVM, such as the data frames of batches, only when it collects cycles.
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
    """Yield the samples so far; the last line may be incomplete."""
    for line in lines:
        if line.endswith("\n"):
            yield json.loads(line)


if __name__ == "__main__":
    main()
