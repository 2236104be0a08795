"""The log through Spark's connector to S3, on an imitation of the server; `make test-storage` has real ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from counting import by_batch
from imitation import imitation
from programs import jars
from s3 import PROFILE, on_s3
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


def test_the_connector_knows_each_setting_that_a_profile_names() -> None:
    """Hadoop takes no notice of one that is misspelt. Constants are in class files with their lengths."""
    (connector,) = (jar for jar in jars("s3a") if jar.name.startswith("hadoop-aws-"))
    with ZipFile(connector) as archive:
        classes = b"".join(archive.read(name) for name in archive.namelist() if name.endswith(".class"))
    named = {
        key
        for profile in PROFILE.parent.glob("*.conf")
        for key in re.findall(r"\bfs\.s3a\.[\w.]*\w", profile.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    unknown = {key for key in named if b"\x01" + len(key).to_bytes(2, "big") + key.encode() not in classes}
    assert not unknown
