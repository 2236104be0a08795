"""Counts what batches and a restart ask of an S3 server, beside stock Spark, and reckons what that costs in a month.

`make storage-requests` runs it. The server's own access log is what is counted. Three seconds stand for ten: what goes
by the clock (snapshots, maintenance) comes as often among so many batches as with a batch every ten seconds. `STATES`
is a regular expression for what to measure; what is there of others stays.
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

from counting import by_batch, by_operation
from prices import BATCHES_A_MONTH, dollars
from s3 import on_s3
from scenarios import Aggregation
from servers import Versitygw, versitygw
from settings import FILE_MANAGER_KEY, FORMAT_VERSION, STATE_STORE, dstl, log_confs, stock_confs

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures" / "storage-requests.json"
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
# The first batches find out what there is, and nothing is old enough yet to be deleted.
BEFORE = 40
COUNTED = 30
# What is kept is old after ten batches instead of a hundred, and deleted in as large lots as by default.
COMPRESSED = {
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "3.0",
    f"{STATE_STORE}.maintenanceInterval": "18s",
    # Twice as often as by default: each store once among the batches that are counted.
    **dstl(materialize__interval="90s"),
}


# What each store has of its own, or its share in: as many partitions more, as many times more of it.
OF_STORES = r" (state/\d+/(\d+|N)(?!/_metadata)\b|dstl/data\b)"


def main() -> None:
    """Measure each way to keep state."""
    wanted = [state for state in STATES if re.search(sys.argv[1] if len(sys.argv) > 1 else "", state)]
    found: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    with tempfile.TemporaryDirectory(prefix="dstl-requests-") as directory:
        for number, state in enumerate(track(wanted, "Counting requests")):
            work = Path(directory) / str(number)
            with versitygw(work / "server") as server:
                found[state] = measure(server, work / "run", STATES[state])
            FIGURES.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    json.dump(found, sys.stdout, indent=2)


def measure(server: Versitygw, work: Path, confs: Mapping[str, str]) -> dict[str, Any]:
    """Requests of a batch, on average, and of a driver that is started again, with the one batch that it finds."""
    work.mkdir()
    run = on_s3(work, server, Aggregation.generate(BEFORE + COUNTED + 1), confs={**confs, **COMPRESSED})
    run.interval = INTERVAL
    last = run.queries[0].input / "events" / f"{BEFORE + COUNTED:04d}.json"
    last.rename(work / last.name)
    with run.start() as driver:
        # The server is not asked, which would count.
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
    """The requests of one batch, with so many times as many partitions."""
    of_stores = by_operation((name, count) for name, count in counted.items() if re.search(OF_STORES, name))
    others = by_operation((name, count) for name, count in counted.items() if not re.search(OF_STORES, name))
    operations = sorted(of_stores.keys() | others.keys())
    return {name: round((others[name] + times * of_stores[name]) / COUNTED, 2) for name in operations}


def a_month(batch: Mapping[str, float]) -> float:
    """The price of a month of such batches."""
    return round(dollars(batch) * BATCHES_A_MONTH, 2)


if __name__ == "__main__":
    main()
