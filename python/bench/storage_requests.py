# SPDX-License-Identifier: Apache-2.0
"""Counts the requests of batches and of a restart in the access log of an S3 server, beside stock Spark.

`make storage-requests` runs it. Intervals (snapshots, maintenance) are scaled from ten seconds a batch to three.
`STATES` is a regular expression for what to measure; results of others are kept. The price of a month is computed
from the list prices of S3 Standard in us-east-1, https://aws.amazon.com/s3/pricing/.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.progress import track
from storage_figures import REQUESTS, write

from counting import by_batch, by_operation
from s3 import on_s3
from scenarios import Aggregation
from servers import Versitygw, versitygw
from settings import FILE_MANAGER_KEY, FORMAT_VERSION, STATE_STORE, dstl, log_confs, stock_confs
from spark_dstl.probing.cost import READ_DOLLARS, SECONDS_A_MONTH, WRITE_DOLLARS

DIRECT = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
STATES: Mapping[str, Mapping[str, str]] = {
    "spark-dstl, format 1": log_confs(),
    "spark-dstl, format 2": {**log_confs(), FORMAT_VERSION: "2"},
    "stock, direct write": {**stock_confs(), FILE_MANAGER_KEY: DIRECT},
    "stock, default": stock_confs(),
}
PARTITIONS = 16
WANTED = 200
INTERVAL = "3 seconds"
# The first batches probe the storage, and have nothing to delete.
BEFORE = 40
COUNTED = 30
# Ten batches are retained instead of a hundred, and deleted in lots as large as by default.
COMPRESSED = {
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "3.0",
    f"{STATE_STORE}.maintenanceInterval": "18s",
    # Twice as often as by default: once for each store in the counted batches.
    **dstl(materialize__interval="90s"),
}
# Requests of stores, which grow with the number of partitions.
OF_STORES = r" (state/\d+/(\d+|N)(?!/_metadata)\b|dstl/data\b)"


# Operations without a price, and those with the price of a read; all others cost as much as a write.
FREE, READS = ("Delete", "Abort"), ("Get", "Head")
BATCHES_A_MONTH = SECONDS_A_MONTH // 10


def main() -> None:
    """Measure each way to keep state."""
    wanted = [state for state in STATES if re.search(sys.argv[1] if len(sys.argv) > 1 else "", state)]
    found: dict[str, Any] = json.loads(REQUESTS.read_text(encoding="utf-8")) if REQUESTS.exists() else {}
    with tempfile.TemporaryDirectory(prefix="dstl-requests-") as directory:
        for number, state in enumerate(track(wanted, "Counting requests")):
            work = Path(directory) / str(number)
            with versitygw(work / "server") as server:
                found[state] = measure(server, work / "run", STATES[state])
            write(REQUESTS, found)
    json.dump(found, sys.stdout, indent=2)


def measure(server: Versitygw, work: Path, confs: Mapping[str, str]) -> dict[str, Any]:
    """Count the requests of a batch, on average, and of a restarted driver with the one batch that it finds."""
    work.mkdir()
    run = on_s3(work, server, Aggregation.generate(BEFORE + COUNTED + 1), confs={**confs, **COMPRESSED})
    run.interval = INTERVAL
    last = run.queries[0].input / "events" / f"{BEFORE + COUNTED:04d}.json"
    last.rename(work / last.name)
    with run.start() as driver:
        # From the access log: a request to the server would be counted.
        driver.wait_until(lambda: len(by_batch(server.asked())) > BEFORE + COUNTED, f"{BEFORE + COUNTED} batches")
    counted = sum(by_batch(server.asked())[BEFORE : BEFORE + COUNTED], Counter())
    before = len(server.requests())
    (work / last.name).rename(last)
    run.interval = ""
    with run.start() as driver:
        driver.succeed()
    restart = sum(by_batch(server.asked()[before:]), Counter())
    run.check()
    return {
        "batch": shares(counted, 1),
        "dollars a month": a_month(shares(counted, 1)),
        f"batch with {WANTED} partitions": shares(counted, WANTED / PARTITIONS),
        f"dollars a month with {WANTED} partitions": a_month(shares(counted, WANTED / PARTITIONS)),
        "restart": dict(sorted(by_operation(restart.items()).items())),
        "restart, all": restart.total(),
    }


def shares(counted: Mapping[str, int], times: float) -> dict[str, float]:
    """Return the requests of one batch, with the number of partitions multiplied."""
    of_stores = by_operation((name, count) for name, count in counted.items() if re.search(OF_STORES, name))
    others = by_operation((name, count) for name, count in counted.items() if not re.search(OF_STORES, name))
    operations = sorted(of_stores.keys() | others.keys())
    return {name: round((others[name] + times * of_stores[name]) / COUNTED, 2) for name in operations}


def a_month(batch: Mapping[str, float]) -> float:
    """Return the price of a month of such batches."""
    return round(sum(count * price(operation) for operation, count in batch.items()) * BATCHES_A_MONTH, 2)


def price(operation: str) -> float:
    """Return the price of one request, in dollars."""
    return 0 if operation.startswith(FREE) else READ_DOLLARS if operation.startswith(READS) else WRITE_DOLLARS


if __name__ == "__main__":
    main()
