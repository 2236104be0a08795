# SPDX-License-Identifier: Apache-2.0
"""The log through Spark's S3 connector, on an imitation of the server; `make test-storage` has real servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from verified import verified

from counting import by_batch, by_operation
from imitation import imitation
from programs import connector
from s3 import environment, on_s3
from scenarios import Aggregation
from servers import S3Server
from settings import PROFILES
from spark_facts import CREATES_EXCLUSIVELY_ON_S3, LINE
from wire import Fault, Rule, wire

TWO_WRITES = {"PUT offsets/N": 1, "PUT commits/N": 1}


@pytest.fixture
def server() -> Iterator[S3Server]:
    with imitation() as started:
        yield started


def test_a_batch_on_s3_takes_two_writes_and_survives_lost_replies_and_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: S3Server
) -> None:
    for name, value in environment(server.address).items():
        monkeypatch.setenv(name, value)
    with wire(server.port) as between:
        run = on_s3(tmp_path, server, Aggregation.generate(files=7, rows=60), address=between.address)
        between.rules.append(Rule(Fault.LOSE_REPLY, target=r"/(offsets|commits)/[01]$", limit=2))
        driver = run.kill_at("driver.before-commit-entry", 6)
        assert len(between.met(Fault.LOSE_REPLY)) == 2
        # The first batches read what a run needs at its start.
        for batch in by_batch((seen.method, seen.target) for seen in between.seen)[3:6]:
            assert {of: number for of, number in batch.items() if of.startswith("PUT")} == TWO_WRITES
            # Without exclusive creation it also reads whether another driver has written.
            others = {} if CREATES_EXCLUSIVELY_ON_S3 else {"HEAD": 4, "GET": 4}
            assert by_operation(batch.items()) == {"PUT": 2, **others}
        assert ("does not create objects exclusively" in driver.log()) != CREATES_EXCLUSIVELY_ON_S3
        run.succeed()
        run.check()
        assert not verified(run.queries[0].checkpoint, deep=True).is_damaged


@pytest.mark.skipif(LINE < (4, 2), reason="the profiles are for Hadoop 3.5")
def test_the_connector_has_each_setting_of_the_profiles() -> None:
    """Hadoop ignores a misspelt setting. Class files hold each constant after its length."""
    (hadoop_aws,) = (jar for jar in connector() if jar.name.startswith("hadoop-aws-"))
    with ZipFile(hadoop_aws) as archive:
        classes = b"".join(archive.read(name) for name in archive.namelist() if name.endswith(".class"))
    named = {
        key
        for profile in PROFILES.glob("*.conf")
        for key in re.findall(r"\bfs\.s3a\.[\w.]*\w", profile.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    unknown = {key for key in named if b"\x01" + len(key).to_bytes(2, "big") + key.encode() not in classes}
    assert not unknown
