"""The log through Spark's connector to S3, on an imitation of the server; `make test-storage` has real ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from counting import by_batch
from imitation import imitation
from s3 import on_s3
from scenarios import Aggregation
from servers import S3Server
from wire import Fault, Rule, wire


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
        for batch in by_batch((seen.method, seen.target) for seen in between.seen)[3:6]:
            assert batch == {"PUT offsets/N": 1, "PUT commits/N": 1}
        with run.start() as driver:
            driver.succeed()
        run.check()
        run.check_state()
