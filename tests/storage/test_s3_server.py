# SPDX-License-Identifier: Apache-2.0
"""Requests of batches and restarts to an S3 server, and two drivers without exclusive creation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import spark_dstl
from counting import by_batch
from courses import start_apart, start_at_once, start_two
from harness import Run
from s3 import ROOT, environment, on_s3
from scenarios import Aggregation
from servers import BUCKET, S3_SERVERS, S3Process, Versitygw, versitygw
from settings import FORMAT_VERSION, STATE_STORE, dstl, log_confs

# Without hedges and background work.
ONCE = {**dstl(upload__retryPolicy="none"), f"{STATE_STORE}.maintenanceInterval": "1h"}


@pytest.fixture(params=S3_SERVERS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[S3Process]:
    """A server of the test's own."""
    with S3_SERVERS[request.param](tmp_path / "server") as server:
        yield server


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Versitygw]:
    """A server with an access log."""
    with versitygw(tmp_path / "server") as server:
        yield server


def work_of(tmp_path: Path, name: str = "run") -> Path:
    work = tmp_path / name
    work.mkdir()
    return work


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_batch_with_small_changes_is_two_writes_and_nothing_else(
    tmp_path: Path, logged: Versitygw, version: str
) -> None:
    confs = {**log_confs(), **ONCE, FORMAT_VERSION: version}
    run = on_s3(work_of(tmp_path), logged, Aggregation.generate(files=8), confs=confs)
    run.succeed()
    run.check()
    # The first batches probe the storage, and the query ends after the last one.
    for batch in by_batch(logged.asked())[3:7]:
        assert batch == {"PutObject offsets/N": 1, "PutObject commits/N": 1}
    run.check_state()


def test_old_entries_are_deleted_without_an_existence_check(tmp_path: Path, logged: Versitygw) -> None:
    confs = {**log_confs(), **ONCE, "spark.sql.streaming.minBatchesToRetain": "2"}
    run = on_s3(work_of(tmp_path), logged, Aggregation.generate(files=8), confs=confs)
    run.succeed()
    run.check()
    batches = by_batch(logged.asked())[3:7]
    assert all(batch["DeleteObject offsets/N"] for batch in batches)
    assert set().union(*batches) == {"PutObject offsets/N", "PutObject commits/N", "DeleteObject offsets/N"}


def test_a_copy_object_by_object_has_all_partitions(
    tmp_path: Path, server: S3Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a copy lacks directory markers, by which Spark's state reader finds partitions."""
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(files=3))
    run.succeed()
    for key in server.keys("query-0/"):
        if not key.endswith("/"):
            source = {"Bucket": BUCKET, "Key": key}
            server.client.copy_object(Bucket=BUCKET, Key=key.replace("query-0", "copy", 1), CopySource=source)
    run.queries[0] = run.queries[0].at(f"{ROOT}/copy")
    for name, value in environment(server.address).items():
        monkeypatch.setenv(name, value)

    def notes() -> list[str]:
        with spark_dstl.open(f"{ROOT}/copy") as checkpoint:
            verified = checkpoint.verify()
            assert not verified.is_damaged
            return [note.what for note in verified.notes]

    assert len(notes()) == 1
    assert "lacks the directories of" in notes()[0]
    run.check_state()
    assert notes() == []


def restarted(
    work: Path, server: Versitygw, partitions: int, files: int = 4, confs: Mapping[str, str] | None = None
) -> Counter[str]:
    """Count the requests of a driver with one batch to run and every store to load."""
    kept = {**log_confs(), **(confs or {}), **ONCE, "spark.sql.shuffle.partitions": str(partitions)}
    run = on_s3(work, server, Aggregation.generate(files), confs=kept)
    query = replace(run.queries[0], checkpoint=f"{run.queries[0].checkpoint}-{work.name}")
    run.queries[0] = query
    with query.without_last(), run.start() as driver:
        driver.succeed()
    before = len(server.requests())
    run.succeed()
    run.check()
    return sum(by_batch(server.asked()[before:], f"query-0-{work.name}"), Counter())


def test_the_requests_of_a_restart_do_not_depend_on_the_number_of_partitions(tmp_path: Path, logged: Versitygw) -> None:
    few, many = (restarted(work_of(tmp_path, f"with-{count}"), logged, count) for count in (2, 16))
    assert few == many


def test_a_restart_makes_one_more_request_for_each_entry_that_it_replays(tmp_path: Path, logged: Versitygw) -> None:
    few, many = (restarted(work_of(tmp_path, f"after-{files}"), logged, 4, files) for files in (4, 9))
    many.subtract(few)
    # The connector may cache a second request soon after the first.
    assert 4 <= many.pop("GetObject commits/N") <= 6
    assert {place: count for place, count in many.items() if count} == {}


def test_a_restart_makes_at_most_two_requests_for_each_data_file_that_holds_snapshots(
    tmp_path: Path, logged: Versitygw
) -> None:
    """At most one file for each store: commit entries hold the lists of these snapshots."""
    stores = 16
    every = dstl(materialize__replayCost="100000") | {f"{STATE_STORE}.minDeltasForSnapshot": "1"}
    found = restarted(work_of(tmp_path, "with-snapshots"), logged, stores, confs=every)
    kinds: Counter[str] = Counter()
    for place, count in found.items():
        kinds[re.sub(r"dstl/data/.+", "dstl/data/F", place)] += count
    assert 0 < kinds["GetObject dstl/data/F"] <= stores
    assert kinds["HeadObject dstl/data/F"] <= kinds["GetObject dstl/data/F"]
    assert not [place for place in kinds if re.search(r" state/0/([1-9]|0/(?!_metadata))", place)]


@pytest.mark.parametrize("start", [start_at_once, start_apart, start_two])
def test_two_drivers_leave_one_history_also_without_exclusive_creation(
    tmp_path: Path, server: S3Process, start: Callable[[Run], object]
) -> None:
    """The late one finds the entry of the other one before it writes its own."""
    confs = {**log_confs(), "spark.hadoop.fs.s3a.create.conditional.enabled": "false"}
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(files=8), confs=confs)
    start(run)
    logs = [log.read_text(encoding="utf-8") for log in run.work.glob("driver-*.log")]
    assert any("does not create objects exclusively" in log for log in logs)
