# SPDX-License-Identifier: Apache-2.0
"""The log through the connector to Azure, on Azurite: a server without a hierarchical namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from verified import verified

from azurite_server import Azurite, azurite
from courses import finish, kill_drivers, start_two
from harness import Run, local_names
from scenarios import Aggregation
from settings import dstl, log_confs


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Azurite]:
    """A server of the test's own."""
    with azurite(tmp_path / "server") as server:
        yield server


def work_of(tmp_path: Path) -> Path:
    work = tmp_path / "run"
    work.mkdir()
    return work


def check_on(server: Azurite) -> Callable[[Run], None]:
    """Check sink and state; another application reads the state in a copy of the checkpoint."""

    def check(run: Run) -> None:
        run.check()
        copy = server.download(run.queries[0].checkpoint, run.work / "copy")
        run.queries[0] = run.queries[0].at(str(copy))
        run.names = local_names
        run.check_state()
        assert not verified(copy, deep=True).is_damaged

    return check


@pytest.mark.parametrize("largest", ["128k", "0"])
def test_a_driver_killed_around_its_commits_loses_and_repeats_nothing(
    tmp_path: Path, server: Azurite, largest: str
) -> None:
    confs = {**log_confs(), **dstl(inline__maxSegmentSize=largest)}
    run = server.run(work_of(tmp_path), Aggregation.generate(), confs=confs)
    kill_drivers(run, {"driver.before-commit-entry": 0, "driver.seals-pending": 2, "driver.after-commit-entry": 3})
    finish(run, check_on(server))


def test_of_two_drivers_on_one_checkpoint_the_late_one_stops(tmp_path: Path, server: Azurite) -> None:
    start_two(server.run(work_of(tmp_path), Aggregation.generate(), confs=log_confs()), check=check_on(server))
