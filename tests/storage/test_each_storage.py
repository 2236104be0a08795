# SPDX-License-Identifier: Apache-2.0
"""Guarantees on every storage, tested on each in the same way."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from cases import ALWAYS_SNAPSHOTS, LARGE_SEGMENTS
from courses import Check, finish, kill_drivers, start_apart, start_at_once, start_two
from flights_input import SENTINEL
from harness import Reader, Run, compare
from main_job import MainJob
from random_kills import Kills, kill_at_random, seeds
from rescaling import FROM_NONE_TO_TWO, come_and_go
from rescaling import MASTER as CLUSTER
from scenarios import Aggregation, Windows
from settings import FORMAT_VERSION, dstl, log_confs, stock_confs
from spark_dstl import Checkpoint
from storages import STORAGES, Storage

KILLS = 10
# Segments of some stores are in data files, those of others in the commit entry.
SOME_LARGE = dstl(inline__maxSegmentSize="1000")
KINDS = {"large segments": LARGE_SEGMENTS, "checkpoint format 2": {FORMAT_VERSION: "2"}}


@pytest.fixture(scope="module", params=STORAGES)
def storage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """A storage for all tests, each of which has a separate directory."""
    with STORAGES[request.param](tmp_path_factory.mktemp("server")) as storage:
        yield storage


@pytest.fixture(scope="module")
def reader(storage: Storage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """An application that reads states and has never run a query."""
    reader = Reader(tmp_path_factory.mktemp("reader"), storage.reached(log_confs()))
    yield reader
    reader.close()


@pytest.fixture
def check(storage: Storage, reader: Reader) -> Check:
    """Check sink and state, and every byte that commit entries name."""

    def is_right(run: Run) -> None:
        run.check_all(reader)
        for query in run.queries:
            with storage.opened(query.checkpoint) as checkpoint:
                verify(checkpoint)
            assert not storage.unfinished(query.checkpoint)

    return is_right


def verify(checkpoint: Checkpoint) -> None:
    found = checkpoint.verify(deep=True)
    assert not found.is_damaged, (found.damages, found.lost)


@pytest.mark.timeout(1200)
def test_the_main_job_loses_and_repeats_nothing(tmp_path: Path, storage: Storage) -> None:
    """Its driver is killed in a batch in the middle, as in the demo."""
    job = MainJob.create(tmp_path, storage)
    batch = random.Random(1).randrange(job.batches * 2 // 5, job.batches * 3 // 5)
    checkpoint = job.settings.location
    with job.start("stream", "driver-1") as driver:
        driver.wait_until(lambda: str(batch) in storage.files(f"{checkpoint}/offsets"), f"batch {batch}")
        driver.kill()
    with job.start("stream", "driver-2") as driver:
        driver.succeed()
    verdict = job.verdict()
    assert verdict["expected"] > 0
    assert (verdict["missing"], verdict["unexpected"]) == (0, 0), verdict
    with storage.opened(checkpoint) as found:
        verify(found)
        # Watermarks have emitted all real windows, and cleared both sides of the join.
        keys = [json.loads(row["key"]) for row in found.state().read_all().to_pylist()]
    assert keys
    assert all(SENTINEL in key.values() for key in keys), keys


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_killed_around_a_commit_loses_and_repeats_nothing(
    tmp_path: Path, storage: Storage, check: Check, kind: str
) -> None:
    run = storage.run(tmp_path, Aggregation.generate(), master=CLUSTER, confs={**log_confs(), **KINDS[kind]})
    run.confs["spark.master"] = "local[2]"
    kill_drivers(run, {"driver.before-commit-entry": 0, "driver.seals-pending": 2, "driver.after-commit-entry": 3})
    run.confs["spark.master"] = CLUSTER
    with run.start("executor.mid-task=pause@5") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.mid-task"))
        driver.succeed()
    check(run)


def test_executors_that_die_while_they_write_and_load_snapshots_lose_nothing(
    tmp_path: Path, storage: Storage, check: Check
) -> None:
    # Only snapshots are in data files: a batch fails if an executor dies while it uploads changes.
    small = dstl(batch__persistDelay="50ms", inline__maxSegmentSize="1000")
    confs = {**log_confs(), **ALWAYS_SNAPSHOTS, **small}
    run = storage.run(tmp_path, Aggregation.generate(files=10, rows=30), master=CLUSTER, confs=confs)
    with run.start("executor.snapshot-uploaded=pause@1;driver.before-commit-entry=pause@6") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.snapshot-uploaded"))
        driver.wait_for_pause("driver.before-commit-entry")
        driver.kill()
    with run.start("executor.snapshot-loading=pause") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.snapshot-loading"))
        driver.succeed()
    check(run)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", seeds(), ids=lambda seed: f"seed-{seed}")
def test_drivers_and_executors_killed_at_random_moments_lose_and_repeat_nothing(
    tmp_path: Path, storage: Storage, check: Check, seed: int
) -> None:
    confs = {**log_confs(), **ALWAYS_SNAPSHOTS, **SOME_LARGE}
    run = storage.run(tmp_path, Aggregation.generate(files=40, rows=60, seed=seed), master=CLUSTER, confs=confs)
    with storage.watched() as watched:
        kills = Kills(seed, watched, KILLS)
        kill_at_random(run, kills, check)
    # The query may complete before the last kill.
    assert kills.left <= KILLS // 2, kills
    assert {"driver", "executor"} <= {kill.split()[0] for kill in kills.done}, kills


@pytest.mark.parametrize("start", [start_at_once, start_apart, start_two])
def test_two_drivers_leave_one_history(
    tmp_path: Path, storage: Storage, check: Check, start: Callable[[Run, Check], object]
) -> None:
    """Two that start at once; one that starts while another runs; one that is late with a commit entry."""
    start(storage.run(tmp_path, Aggregation.generate(files=8)), check)


def test_data_files_may_be_elsewhere(tmp_path: Path, storage: Storage, check: Check) -> None:
    with storage.elsewhere(tmp_path) as elsewhere:
        confs = {**log_confs(), **LARGE_SEGMENTS, **dstl(basePath=elsewhere.path)}
        run = storage.run(tmp_path, Aggregation.generate(), confs=confs)
        kill_drivers(run, {"driver.before-commit-entry": 3})
        finish(run, check)
        assert elsewhere.files()
    assert not [file for file in storage.files(run.queries[0].checkpoint) if "dstl/data/" in file]


@dataclass(frozen=True)
class Continued(Aggregation):
    """A batch without data ends the first run: the last file is in the batch after it."""

    versions: ClassVar = [6]


def test_a_stock_checkpoint_is_continued(tmp_path: Path, storage: Storage, check: Check) -> None:
    run = storage.run(tmp_path, Continued.generate(), confs=stock_confs())
    query = run.queries[0]
    with query.without_last(), run.start() as driver:
        driver.succeed()

    def plain() -> list[str]:
        return [file for file in storage.files(query.checkpoint) if file.endswith(".changelog")]

    before = plain()
    assert before
    run.confs.update(storage.reached(log_confs()))
    run.has_plain_snapshots = True
    finish(run, check)
    assert plain() == before


def test_executors_are_allocated_dynamically(tmp_path: Path, storage: Storage, check: Check) -> None:
    confs = {**log_confs(), **FROM_NONE_TO_TWO}
    run = storage.run(tmp_path, Aggregation.generate(), master=CLUSTER, confs=confs)
    come_and_go(run)
    finish(run, check)


def test_other_applications_read_the_checkpoint_during_a_batch_and_after_the_drivers_death(
    tmp_path: Path, storage: Storage, reader: Reader, check: Check
) -> None:
    """Spark's state reader, and the functions of the `dstl` commands."""
    truth = Aggregation.generate()
    run = storage.run(tmp_path, truth, confs={**log_confs(), **LARGE_SEGMENTS})
    checkpoint = run.queries[0].checkpoint
    with run.start("driver.before-commit-entry=pause@4") as driver:
        driver.wait_for_pause("driver.before-commit-entry")
        # The data file of batch 4 exists, and no commit entry names it.
        run.check_state(reader)
        see(storage, checkpoint, 3, truth.after(4))
        driver.kill()
    see(storage, checkpoint, 3, truth.after(4))
    finish(run, check)


def see(storage: Storage, path: str, newest: int, expected: Windows) -> None:
    """Open a checkpoint as the commands do; returns its newest batch, and the state after it."""
    with storage.opened(path) as checkpoint:
        verify(checkpoint)
        assert checkpoint.summary().newest_batch == newest
        assert set(checkpoint.stores().column("version").to_pylist()) == {newest + 1}
        rows = checkpoint.state().read_all().to_pylist()
    found = {
        (int(row["key"]["window"]["start"].timestamp()), row["key"]["key"]): tuple(row["value"].values())
        for row in rows
    }
    assert len(found) == len(rows)
    assert not compare(expected, found)
