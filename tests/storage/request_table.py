"""Counts what a batch and a restart ask of an S3 server, beside stock Spark, and writes it down for the docs.

`make storage-requests` runs it. The server's own access log is what is counted.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rich.progress import track

from s3 import on_s3
from scenarios import Aggregation
from servers import Request, Versitygw, versitygw
from settings import FILE_MANAGER_KEY, log_confs, stock_confs

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures" / "storage-requests.json"
DIRECT = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
STATES: Mapping[str, Mapping[str, str]] = {
    "spark-dstl": log_confs(),
    "stock, direct write": {**stock_confs(), FILE_MANAGER_KEY: DIRECT},
    "stock, default": stock_confs(),
}
PARTITIONS = (4, 16)
FILES = 12
# Between these commit entries nothing begins and nothing ends.
STEADY = range(4, 10)


def main() -> None:
    """Measure each way to keep state with each number of partitions."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="dstl-requests-") as directory:
        for state, partitions in track([(s, p) for s in STATES for p in PARTITIONS], "Counting requests"):
            work = Path(directory) / f"{state}-{partitions}"
            (work / "server").mkdir(parents=True)
            (work / "run").mkdir()
            with versitygw(work / "server") as server:
                found[f"{state}, {partitions} partitions"] = measure(server, work / "run", STATES[state], partitions)
    FIGURES.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    json.dump(found, sys.stdout, indent=2)


def measure(server: Versitygw, work: Path, confs: Mapping[str, str], partitions: int) -> dict[str, dict[str, float]]:
    """Requests of a batch by their kind, on average, and of a restart with the batch after it."""
    run = on_s3(
        work, server, Aggregation.generate(FILES), confs={**confs, "spark.sql.shuffle.partitions": str(partitions)}
    )
    last = run.queries[0].input / "events" / f"{FILES - 1:04d}.json"
    last.rename(work / last.name)
    with run.start() as driver:
        driver.succeed()
    batches: list[Counter[str]] = [Counter()]
    for request in server.requests():
        batches[-1].update(counted(request))
        # By rename it comes twice: as a copy, and before as a hidden file of another name.
        if re.search(r"/commits/\d+$", request.target) and request.operation in ("PutObject", "CopyObject"):
            batches.append(Counter())
    steady = sum((batches[number] for number in STEADY), Counter())
    before = len(server.requests())
    (work / last.name).rename(last)
    with run.start() as driver:
        driver.succeed()
    restart = sum((counted(request) for request in server.requests()[before:]), Counter())
    run.check()
    return {"batch": {name: count / len(STEADY) for name, count in sorted(steady.items())}, "restart": dict(restart)}


def counted(request: Request) -> Counter[str]:
    """One of its kind; none of what the file source asks of its own log, with state or without."""
    of_source = re.search(r"/query-0/sources/|prefix=query-0%2Fsources", request.target)
    return Counter() if of_source else Counter([request.operation])


if __name__ == "__main__":
    main()
