# SPDX-License-Identifier: Apache-2.0
"""A query that runs for minutes or longer: memory, objects and connections do not grow.

`make storage-long-run` runs it for an hour; `make test-storage` for some minutes.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from driver_process import Driver, start_driver
from long_run_driver import Totals, expected, parsed
from programs import connector, with_jars
from s3 import ROOT, s3a
from servers import BUCKET, S3_SERVERS, Hdfs, S3Server, hdfs
from settings import STATE_STORE, base_confs, dstl, log_confs
from wire import Wire, wire

LONG_RUN = "SPARK_DSTL_TEST_LONG_RUN"
SECONDS = int(os.environ.get(LONG_RUN, "240"))
SAMPLE_SECONDS = 3
# The limit of S3A's connections; 500 by default.
CONNECTIONS = 20
PARTS = {"multipart.size": "5M", "multipart.threshold": "5M", "block.size": "5M"}
# As in conf/storage/s3.conf: the default stream retains memory for each object that was read.
STREAMS = {"input.stream.type": "classic"}
# S3A's pool has 96 threads by default, and fills in many minutes.
POOLS = {"threads.max": "8"}
# Short intervals: a run of minutes has many rounds of retention and many snapshots.
COMPRESSED = {
    "spark.sql.streaming.minBatchesToRetain": "5",
    f"{STATE_STORE}.maintenanceInterval": "3s",
    **dstl(materialize__interval="10s"),
    # Spark's memory for its UI grows to these limits.
    **{
        f"spark.{of}": "10"
        for of in ("ui.retainedJobs", "ui.retainedStages", "ui.retainedTasks", "sql.ui.retainedExecutions")
    },
}
# The most growth from the second third of the run to the last.
MORE_THREADS = 5
MORE_BYTES = 16 << 20
MORE = 1.25


@dataclass(frozen=True)
class Place:
    """A checkpoint, the settings of its storage, and a function that measures it: objects and bytes at least."""

    checkpoint: str
    confs: Mapping[str, str]
    look: Callable[[], dict[str, int]]
    # Open files or uploads, none at the end.
    left_open: Callable[[], list[str]]
    wire: Wire | None = None


@contextmanager
def on_s3(name: str, work: Path) -> Iterator[Place]:
    with S3_SERVERS[name](work / "server") as server, wire(server.port) as between:

        def look() -> dict[str, int]:
            return {**stored(server), "connections": between.open, "most connections": between.most_open}

        few = {"connection.maximum": str(CONNECTIONS), "connection.ttl": "5m", **PARTS, **STREAMS, **POOLS}
        confs = {**s3a(between.address), **{f"spark.hadoop.fs.s3a.{name}": value for name, value in few.items()}}
        yield Place(
            f"{ROOT}/long-run",
            with_jars({**log_confs(), **confs}, connector()),
            look,
            server.unfinished_uploads,
            between,
        )


def stored(server: S3Server) -> dict[str, int]:
    pages = server.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    sizes = [found["Size"] for page in pages for found in page.get("Contents", ())]
    return {"objects": len(sizes), "bytes": sum(sizes)}


@contextmanager
def on_hdfs(work: Path) -> Iterator[Place]:
    with hdfs(work) as cluster:
        yield Place(f"{cluster.address}/long-run", log_confs(), lambda: summary(cluster), cluster.open_files)


def summary(cluster: Hdfs) -> dict[str, int]:
    found = cluster.ask("/long-run", "GETCONTENTSUMMARY")["ContentSummary"]
    return {"objects": found["fileCount"], "bytes": found["length"]}


PLACES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    **{name: partial(on_s3, name) for name in S3_SERVERS},
    "hdfs": on_hdfs,
}


@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize("name", PLACES)
def test_nothing_grows_with_the_number_of_batches(tmp_path: Path, name: str) -> None:
    with PLACES[name](tmp_path) as place:
        with start(tmp_path, place) as driver:
            samples = list(watched(driver, tmp_path, place))
            driver.succeed()
        result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
        thirds = [third(samples, number) for number in range(3)]
        most = {what: max(sample[what] for sample in samples) for what in samples[0]}
        print(f"{name}: medians in each third: {thirds}; the most: {most}")
        check_result(result)
        assert not place.left_open()
        if place.wire is not None:
            assert [seen for seen in place.wire.seen if seen.method == "POST" and "uploads" in seen.target]
            assert place.wire.most_open < CONNECTIONS
    flat = {"threads": (1.0, MORE_THREADS), **dict.fromkeys(("heap", "resident", "bytes"), (MORE, MORE_BYTES))}
    for what, (times, more) in {**flat, "objects": (MORE, 10)}.items():
        assert thirds[2][what] <= thirds[1][what] * times + more, f"{what} grew: {[one[what] for one in thirds]}"


def start(work: Path, place: Place) -> Driver:
    spec = {
        "confs": {**base_confs("local[2]", work), **place.confs, **COMPRESSED},
        "checkpoint": place.checkpoint,
        "seconds": SECONDS,
        "every": SAMPLE_SECONDS,
        "parent": os.getpid(),
        "samples": str(work / "samples.jsonl"),
        "result": str(work / "result.json"),
    }
    path = work / "spec.json"
    path.write_text(json.dumps(spec, indent=2), encoding="utf-8")
    program = Path(__file__).parent / "long_run_driver.py"
    return start_driver([sys.executable, str(program), str(path)], {}, work, "driver")


def watched(driver: Driver, work: Path, place: Place) -> Iterator[dict[str, int]]:
    """Yield samples of the driver, with the size of its checkpoint at the time."""
    path = work / "samples.jsonl"
    found: list[dict[str, int]] = []

    def comes_another() -> bool:
        before = len(found)
        if path.exists():
            with path.open(encoding="utf-8") as lines:
                found[:] = parsed(lines)
        return len(found) > before

    while not found or found[-1]["seconds"] < SECONDS:
        driver.wait_until(comes_another, "another sample")
        yield {**found[-1], **place.look()}


def third(samples: Sequence[Mapping[str, int]], number: int) -> dict[str, float]:
    """Return the median of each figure in one third of a run."""
    size = len(samples) // 3
    chosen = samples[number * size : (number + 1) * size]
    return {what: statistics.median(sample[what] for sample in chosen) for what in chosen[0]}


def check_result(result: Mapping[str, Any]) -> None:
    """Check sink and state; the last batch may be in the sink alone."""
    assert as_totals(result["sink"]) == expected(result["batches"])
    state = as_totals(result["state"])
    assert any(state == expected(batches) for batches in (result["batches"], result["batches"] - 1))


def as_totals(rows: Sequence[Sequence[Any]]) -> Totals:
    found = {key: (count, total, note) for key, count, total, note in rows}
    assert len(found) == len(rows), "a key twice"
    return found
