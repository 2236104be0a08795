# SPDX-License-Identifier: Apache-2.0
"""A stopped driver commits no batch after its successor has committed and purged later batches.

Its clocks stand still meanwhile, and few entries are retained: an entry that retention keeps fences it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from verified import verified

from driver_process import Driver
from harness import Reader, Run, compare
from scenarios import Ticks
from settings import IN_FULL, STATE_STORE, dstl, log_confs
from spark_facts import LOGS_SNAPSHOTS

pytestmark = pytest.mark.skipif(not LOGS_SNAPSHOTS, reason="retention follows Spark's maintenance, minutes later")

IF_IN_FULL = pytest.mark.skipif(
    not IN_FULL, reason="like another, at another point or with another number of successors"
)
BATCH = 3
# Entries are purged soon after they are written.
SHORT_RETENTION = {
    **dstl(materialize__replayCost="100000", batch__persistDelay="10ms"),
    f"{STATE_STORE}.minDeltasForSnapshot": "1",
    "spark.sql.streaming.minBatchesToRetain": "2",
}


def started(work: Path) -> Run:
    """A query that runs batches without a pause. Its source has no log, which would fence drivers."""
    run = Run.create(work, Ticks(), master="local[1]", confs={**log_confs(), **SHORT_RETENTION})
    run.interval = "0 seconds"
    return run


def committed(run: Run) -> set[int]:
    """The batches with a commit entry."""
    query = run.queries[0]
    return run.committed(query) if Path(query.checkpoint, "commits").exists() else set()


def newest(run: Run) -> int:
    """The newest committed batch, or -1."""
    return max(committed(run), default=-1)


def commit_and_purge(run: Run, driver: Driver, first: int) -> None:
    """Wait until the driver has committed batches from `first` on, and most of the first of them are purged.

    The first itself is not: the paused driver would create it.
    """
    early = set(range(first, first + 8))
    driver.wait_until(lambda: newest(run) > max(early) and len(committed(run) & early) <= 3, f"purge of {early}")
    assert first in committed(run)


def writers(run: Run) -> dict[int, str]:
    """The run that wrote each commit entry; entries may be purged meanwhile."""
    found = {}
    for batch in sorted(committed(run)):
        entry = Path(run.queries[0].checkpoint) / "commits" / str(batch)
        if entry.exists():
            found[batch] = str(json.loads(entry.read_bytes().splitlines()[2])["run"])
    return found


def assert_fenced(run: Run, late: Driver, successor: Driver, first: int) -> None:
    """The late driver ends with `DSTL_FENCED`, has written no entry, and the successor continues."""
    others = {writer for batch, writer in writers(run).items() if batch >= first}
    assert late.wait() != 0
    assert "[DSTL_FENCED]" in late.log(), late.failed("it does not end with DSTL_FENCED")
    before = newest(run)
    successor.wait_until(lambda: newest(run) > before + 2, "further batches of the successor")
    found = writers(run)
    assert {writer for batch, writer in found.items() if batch >= first} <= others, found
    successor.kill()


def assert_whole(run: Run, reader: Reader) -> None:
    """The checkpoint is intact, and a further driver continues from it with the right result."""
    found = verified(run.queries[0].checkpoint, deep=True)
    assert not found.is_damaged, found
    before = newest(run)
    run.interval = ""
    for _ in range(2):
        run.proceed(reader)
    assert newest(run) > before + 1
    query = run.queries[0]
    batches = newest(run) + 1
    assert isinstance(query.scenario, Ticks)
    differences = compare(query.scenario.after(batches), query.result(batches))
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize(
    ("point", "killed"),
    [
        pytest.param("driver.after-commit-entry", False, marks=IF_IN_FULL),
        ("driver.before-commit-entry", True),
        pytest.param("driver.after-commit-entry", True, marks=IF_IN_FULL),
        pytest.param("driver.before-commit-entry", False, marks=IF_IN_FULL),
    ],
)
def test_a_driver_stopped_around_a_commit_is_fenced_after_a_purge(
    tmp_path: Path, reader: Reader, point: str, killed: bool
) -> None:
    run = started(tmp_path)
    first = BATCH + 1 if point == "driver.after-commit-entry" else BATCH
    with run.start(f"{point}=pause@{BATCH}") as late:
        late.wait_for_pause(point)
        late.stall()
        if killed:
            with run.start() as dead:
                dead.wait_until(lambda: newest(run) >= first, "a batch of the first successor")
                dead.kill()
        with run.start() as successor:
            commit_and_purge(run, successor, first)
            run.resume(point)
            late.go_on()
            assert_fenced(run, late, successor, first)
    assert_whole(run, reader)


@IF_IN_FULL
def test_a_driver_stopped_anywhere_is_fenced_after_a_purge(tmp_path: Path, reader: Reader) -> None:
    run = started(tmp_path)
    with run.start() as late:
        late.wait_until(lambda: newest(run) >= BATCH, "some batches")
        late.stall()
        first = newest(run) + 1
        with run.start() as successor:
            commit_and_purge(run, successor, first)
            late.go_on()
            assert_fenced(run, late, successor, first)
    assert_whole(run, reader)
