# SPDX-License-Identifier: Apache-2.0
"""`dstl follow` on S3, killed at random moments as its query is: each change once and in order.

`make storage-followers` kills for an hour; `make test-storage` for a minute.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

import spark_dstl
from driver_process import Driver, start_driver
from harness import Query
from programs import connector
from random_kills import seeds
from s3 import environment, on_s3
from scenarios import Aggregation, Ticks
from servers import versitygw
from settings import dstl, log_confs
from spark_dstl import JvmOptions
from wire import wire

FOLLOWED = "SPARK_DSTL_TEST_FOLLOWED"
SECONDS = int(os.environ.get(FOLLOWED, "60"))
# The most requests of query and follower between two kills. A start of the query makes some fifty, a batch five.
REQUESTS_APART = 400
# A follower starts slowly enough that Spark has deleted the batch of its cursor: pins of dead followers keep the log.
CONFS = {
    **log_confs(),
    **dstl(materialize__replayCost="100000", inline__maxSegmentSize="1000"),
    "spark.sql.streaming.minBatchesToRetain": "10",
}


def start_follower(query: Query, work: Path, to: Path, address: str, number: int, *options: str) -> Driver:
    """Start the command, which continues after its cursor."""
    command = [sys.executable, "-m", "spark_dstl", "follow", query.checkpoint, "--to", str(to), "--format", "jsonl"]
    command += ["--jars", ",".join(map(str, connector())), *options]
    return start_driver(command, environment(address), work, f"follower-{number}")


def changes(path: Path) -> Counter[tuple[str, int, int]]:
    """The key, count and sum of each change in a file of the command."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(row["change_type"] == "update" for row in rows), path
    return Counter((*row["key"].values(), *row["value"].values()) for row in rows)


def sink(path: Path) -> Counter[tuple[str, int, int]]:
    """The key, count and sum of each row that a batch has sent to the sink."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return Counter((row["key"], row["count"], row["sum"]) for row in rows)


def wait_for(running: Mapping[str, Driver], holds: Callable[[], bool], what: str) -> None:
    """Wait for a condition; fail if a process has ended by itself."""
    first = next(iter(running.values()))
    first.wait_until(lambda: holds() or any(driver.has_ended() for driver in running.values()), what)
    for name, driver in running.items():
        if driver.has_ended():
            raise driver.failed(f"the {name} ended before {what}")


@pytest.mark.timeout(SECONDS + 900)
@pytest.mark.parametrize("seed", seeds(), ids=lambda seed: f"seed-{seed}")
def test_a_killed_follower_of_a_killed_query_misses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    to = tmp_path / "changes"
    cursor = to / "cursor.json"
    kills: Counter[str] = Counter()
    with versitygw(tmp_path / "server") as server, wire(server.port) as between:
        run = on_s3(tmp_path, server, Ticks(), confs=CONFS, address=between.address)
        run.interval = "100 milliseconds"
        (query,) = run.queries
        for name, value in environment(between.address).items():
            monkeypatch.setenv(name, value)
        follower = partial(start_follower, query, tmp_path, to, between.address)
        starts: dict[str, Callable[[], Driver]] = {
            "query": run.start,
            "follower": lambda: follower(kills["follower"]),
        }
        running: dict[str, Driver] = {"query": run.start()}
        try:
            wait_for(running, lambda: 0 in run.committed(query), "the first commit")
            with spark_dstl.open(query.checkpoint) as checkpoint, checkpoint.pin() as pin:
                first = pin.batch
                running["follower"] = follower(0, "--from", str(first))
                wait_for(running, cursor.exists, "the first batch")
            ends = time.monotonic() + SECONDS
            while time.monotonic() < ends:
                moment = len(between.seen) + chance.randrange(1, REQUESTS_APART)
                victim = chance.choice(list(starts))
                wait_for(running, lambda: len(between.seen) >= moment, f"{moment} requests; {kills} with seed {seed}")  # noqa: B023
                running[victim].kill()
                kills[victim] += 1
                running[victim] = starts[victim]()
            running.pop("query").kill()
            newest = max(run.committed(query))

            def has_all() -> bool:
                return bool(json.loads(cursor.read_text(encoding="utf-8"))["batch"] == newest)

            wait_for(running, has_all, f"the changes of batch {newest}; {kills} with seed {seed}")
        finally:
            for driver in running.values():
                driver.kill()
    names = {f"{batch:010d}.jsonl": query.output / f"{batch}.json" for batch in range(first, newest + 1)}
    assert {path.name for path in to.glob("*.jsonl")} == set(names), kills
    for name, of in names.items():
        assert changes(to / name) == sink(of), (name, kills)
    print(f"{len(names)} batches followed over {dict(kills)} kills, seed {seed}")
    assert min(kills.values()) > 0, kills


def test_a_batch_takes_two_requests_and_a_look_in_vain_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with versitygw(tmp_path / "server") as server, wire(server.port) as between:
        run = on_s3(tmp_path, server, Aggregation.generate(3))
        with run.start() as driver:
            driver.succeed()
        for name, value in environment(between.address).items():
            monkeypatch.setenv(name, value)
        jvm = JvmOptions(jars=tuple(map(str, connector())))
        with (
            spark_dstl.open(run.queries[0].checkpoint, jvm=jvm) as checkpoint,
            checkpoint.follow(0) as followed,
        ):
            batches = followed.changes()
            # With the schemas, which are read once for a run.
            next(batches)
            between.begin([])
            next(batches)
            assert [(seen.method, seen.status) for seen in between.seen] == [("HEAD", 200), ("GET", 206)]
            between.begin([])
            assert checkpoint.storage.look("commits/9") is None
            assert [(seen.method, seen.status) for seen in between.seen] == [("HEAD", 404)]
