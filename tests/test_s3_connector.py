"""The log through Spark's connector to S3, on an imitation of the server; `make test-storage` has real ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from imitation import imitation
from s3 import on_s3
from scenarios import Aggregation
from servers import S3Server
from wire import Fault, Rule, Wire, wire


@pytest.fixture
def server() -> Iterator[S3Server]:
    with imitation() as started:
        yield started


def test_a_driver_is_killed_replies_are_lost_and_a_batch_is_two_writes(tmp_path: Path, server: S3Server) -> None:
    with wire(server.port) as between:
        run = on_s3(tmp_path, server, Aggregation.generate(files=8), address=between.address)
        between.rules.append(Rule(Fault.LOSE_REPLY, target=r"/(offsets|commits)/[01]$", limit=2))
        with run.start("driver.before-commit-entry=pause@6") as driver:
            driver.wait_for_pause("driver.before-commit-entry")
            driver.kill()
        assert len(between.met(Fault.LOSE_REPLY)) == 2
        # The first batches find out what there is.
        for batch in requests_by_batch(between)[3:6]:
            assert batch == {"PUT offsets/N": 1, "PUT commits/N": 1}
        with run.start() as driver:
            driver.succeed()
        run.check()
        run.check_state()


def requests_by_batch(between: Wire) -> list[Counter[str]]:
    """From one commit entry to the next, without what the file source asks of its own log."""
    batches: list[Counter[str]] = [Counter()]
    for seen in between.seen:
        place = re.sub(r"/\d+$", "/N", seen.target.partition("/query-0/")[2])
        if not place.startswith("sources/") and "prefix=query-0%2Fsources" not in seen.target:
            batches[-1][f"{seen.method} {place}"] += 1
        if place == "commits/N" and seen.method == "PUT":
            batches.append(Counter())
    return batches
