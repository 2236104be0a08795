# SPDX-License-Identifier: Apache-2.0
"""The log on an imitation of Google's storage, through Hadoop's connector, and the commands through pyarrow's client.

The tests of each storage use Google's connector.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import spark_dstl
from cases import ALWAYS_SNAPSHOTS
from courses import finish, kill_drivers, start_two
from google_server import GoogleServer, google, of_hadoop
from harness import Run
from programs import jars, with_jars
from scenarios import Aggregation
from servers import BUCKET
from settings import dstl, log_confs


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GoogleServer]:
    """A server of the test's own."""
    with google(tmp_path / "server") as server:
        yield server


@pytest.fixture
def run(tmp_path: Path, server: GoogleServer) -> Iterator[Run]:
    """A query whose checkpoint is there; snapshots, and changes of some stores, are in data files."""
    confs = {**log_confs(), **ALWAYS_SNAPSHOTS, **dstl(inline__maxSegmentSize="1000")}
    work = tmp_path / "run"
    work.mkdir()
    with of_hadoop(server, tmp_path / "hadoop") as settings:
        # Both are options of the driver's JVM.
        java = "spark.driver.extraJavaOptions"
        settings[java] = f"{confs.get(java, '')} {settings[java]}"
        yield Run.create(
            work,
            Aggregation.generate(),
            confs={**with_jars(confs, jars("hadoop-gcp")), **settings},
            checkpoints=f"gs://{BUCKET}/{work.name}",
            names=server.names,
        )


def test_a_driver_killed_around_its_commits_loses_and_repeats_nothing(run: Run, server: GoogleServer) -> None:
    kill_drivers(run, {"driver.before-commit-entry": 0, "driver.seals-pending": 2, "driver.after-commit-entry": 3})
    finish(run)
    checkpoint = run.queries[0].checkpoint
    with spark_dstl.open(server.uri(checkpoint)) as found:
        report = found.verify(deep=True)
        assert not report.is_damaged, (report.damages, report.lost)
        # There is no object that marks the directory of partition 0.
        partitions = found.stores()["partition"].to_pylist()
        assert partitions == list(range(len(partitions)))
        assert not found.leftovers().objects
        with found.pin(4):
            assert found.pins()["batch"].to_pylist() == [4]
        assert not found.pins().num_rows
        found.apply_rollback(found.plan_rollback(4), stopped=True)
    finish(run)


def test_of_two_drivers_on_one_checkpoint_the_late_one_stops(run: Run) -> None:
    start_two(run)
