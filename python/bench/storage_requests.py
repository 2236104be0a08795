# SPDX-License-Identifier: Apache-2.0
"""Counts the requests of batches and of a restart in the access log of an S3 server, beside stock Spark.

A second restart is timed, with each answer delayed by 50 ms.

`make storage-requests` runs it. Intervals (snapshots, maintenance) are scaled from ten seconds a batch to three.
`STATES` is a regular expression for what to measure; results of others are kept. The price of a month is computed
from the list prices of S3 Standard in us-east-1, https://aws.amazon.com/s3/pricing/.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.progress import track
from runner import unwind_on_sigterm

from counting import by_batch, by_operation
from harness import Run
from s3 import on_s3
from scenarios import Aggregation
from servers import Versitygw, toxiproxy, versitygw
from settings import FILE_MANAGER_KEY, FORMAT_VERSION, STATE_STORE, dstl, log_confs, stock_confs
from spark_dstl.probing.cost import READ_DOLLARS, SECONDS_A_MONTH, WRITE_DOLLARS

REQUESTS = Path(__file__).resolve().parents[2] / "docs/figures/storage-requests.json"
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
DELAY_MILLIS = 50
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
    wanted = [state for state in STATES if re.search(sys.argv[1] if len(sys.argv) > 1 else "", state)]
    found: dict[str, Any] = json.loads(REQUESTS.read_text(encoding="utf-8")) if REQUESTS.exists() else {}
    with tempfile.TemporaryDirectory(prefix="dstl-requests-") as directory:
        for number, state in enumerate(track(wanted, "Counting requests")):
            work = Path(directory) / str(number)
            with versitygw(work / "server") as server:
                found[state] = measure(server, work / "run", STATES[state])
            lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(of)}" for name, of in found.items())
            REQUESTS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    json.dump(found, sys.stdout, indent=2)


def measure(server: Versitygw, work: Path, confs: Mapping[str, str]) -> dict[str, Any]:
    """Count the requests of a batch, on average, and of restarted drivers with the one batch that each finds."""
    work.mkdir()
    run = on_s3(work, server, Aggregation.generate(BEFORE + COUNTED + 2), confs={**confs, **COMPRESSED})
    run.interval = INTERVAL
    events = run.queries[0].input / "events"
    later = [path.rename(work / path.name) for path in sorted(events.iterdir())[BEFORE + COUNTED :]]
    with run.start() as driver:
        # From the access log: a request to the server would be counted.
        driver.wait_until(lambda: len(by_batch(server.asked())) > BEFORE + COUNTED, f"{BEFORE + COUNTED} batches")
    counted = sum(by_batch(server.asked())[BEFORE : BEFORE + COUNTED], Counter())
    run.interval = ""
    later[0].rename(events / later[0].name)
    restart, _ = restarted(run, server, {})
    later[1].rename(events / later[1].name)
    with toxiproxy(work, server.port) as proxy:
        proxy.add("latency", latency=DELAY_MILLIS)
        delayed, seconds = restarted(run, server, {"spark.hadoop.fs.s3a.endpoint": proxy.address})
    run.check()
    return {
        "batch": shares(counted, 1),
        "dollars a month": a_month(shares(counted, 1)),
        f"batch with {WANTED} partitions": shares(counted, WANTED / PARTITIONS),
        f"dollars a month with {WANTED} partitions": a_month(shares(counted, WANTED / PARTITIONS)),
        "restart": dict(sorted(by_operation(restart.items()).items())),
        "restart, all": restart.total(),
        f"restart with {DELAY_MILLIS} ms, all": delayed.total(),
        f"restart with {DELAY_MILLIS} ms, seconds": round(seconds, 1),
    }


def restarted(run: Run, server: Versitygw, confs: Mapping[str, str]) -> tuple[Counter[str], float]:
    """Return the requests of a new driver, and the seconds from its first one to its commit entry."""
    before = len(server.requests())
    with run.start(confs=confs) as driver:
        driver.wait_until(lambda: len(server.requests()) > before, "request")
        began = time.monotonic()
        driver.wait_until(lambda: len(by_batch(server.asked()[before:])) > 1, "batch")
        seconds = time.monotonic() - began
        driver.succeed()
    return sum(by_batch(server.asked()[before:]), Counter()), seconds


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
    unwind_on_sigterm()
    main()
