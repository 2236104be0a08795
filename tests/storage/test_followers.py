# SPDX-License-Identifier: Apache-2.0
"""`dstl follow` on S3, killed at random moments as its query is: each change once and in order.

`make storage-killed-followers` kills for an hour; `make test-storage` for a minute.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import spark_dstl
from driver_process import Driver
from followers import CURSOR, batches, is_as_sent, start_follower
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
    cursor = to / CURSOR
    kills = {"query": 0, "follower": 0}
    with versitygw(tmp_path / "server") as server, wire(server.port) as between:
        run = on_s3(tmp_path, server, Ticks(), confs=CONFS, address=between.address)
        run.interval = "100 milliseconds"
        (query,) = run.queries
        for name, value in environment(between.address).items():
            monkeypatch.setenv(name, value)
        starts: dict[str, Callable[[], Driver]] = {
            "query": run.start,
            "follower": lambda: start_follower(query, to, between.address, f"follower-{kills['follower']}"),
        }
        running: dict[str, Driver] = {"query": run.start()}
        try:
            wait_for(running, lambda: 0 in run.committed(query), "the first commit")
            with spark_dstl.open(query.checkpoint) as checkpoint, checkpoint.pin() as pin:
                first = pin.batch
                running["follower"] = start_follower(query, to, between.address, "follower-0", "--from", str(first))
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
    assert batches(to) == list(range(first, newest + 1)), kills
    for batch in batches(to):
        assert is_as_sent(query, to, batch), (batch, kills)
    print(f"{newest + 1 - first} batches followed over {kills} kills, seed {seed}")
    assert min(kills.values()) > 0, kills


def test_a_batch_takes_two_requests_and_a_look_in_vain_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with versitygw(tmp_path / "server") as server, wire(server.port) as between:
        run = on_s3(tmp_path, server, Aggregation.generate(3))
        run.succeed()
        for name, value in environment(between.address).items():
            monkeypatch.setenv(name, value)
        jvm = JvmOptions(jars=tuple(map(str, connector())))
        with (
            spark_dstl.open(run.queries[0].checkpoint, jvm=jvm) as checkpoint,
            checkpoint.follow(0) as followed,
        ):
            changes = followed.changes()
            # With the schemas, which are read once for a run.
            next(changes)
            between.begin([])
            next(changes)
            assert [(seen.method, seen.status) for seen in between.seen] == [("HEAD", 200), ("GET", 206)]
            between.begin([])
            assert checkpoint.storage.look("commits/9") is None
            assert [(seen.method, seen.status) for seen in between.seen] == [("HEAD", 404)]
