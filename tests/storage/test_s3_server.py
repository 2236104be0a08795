"""The log on an S3 server: what a batch asks of it, and that nothing is lost whatever dies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from cases import ALWAYS_SNAPSHOTS, LARGE_SEGMENTS
from counting import by_batch
from courses import check, finish, kill_drivers, start_two
from s3 import on_s3, with_jars
from scenarios import Aggregation
from servers import OTHER_BUCKET, S3Process, Versitygw, minio, versitygw
from settings import FORMAT_VERSION, STATE_STORE, dstl, log_confs, stock_confs

CLUSTER = "local-cluster[2,1,1024]"
# No second attempts beside slow ones, and nothing in the background now and then.
ONCE = {**dstl(upload__retryPolicy="none"), f"{STATE_STORE}.maintenanceInterval": "1h"}
SERVERS = {"versitygw": versitygw, "minio": minio}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[S3Process]:
    """A server of the test's own."""
    with SERVERS[request.param](tmp_path / "server") as server:
        yield server


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Versitygw]:
    """One that writes down what it is asked."""
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
    with run.start() as driver:
        driver.succeed()
    run.check()
    # The first ones find out what there is, and behind the last one the query ends.
    for batch in by_batch(logged.asked())[3:7]:
        assert batch == {"PutObject offsets/N": 1, "PutObject commits/N": 1}
    run.check_state()


def test_what_is_old_is_deleted_without_a_question(tmp_path: Path, logged: Versitygw) -> None:
    confs = {**log_confs(), **ONCE, "spark.sql.streaming.minBatchesToRetain": "2"}
    run = on_s3(work_of(tmp_path), logged, Aggregation.generate(files=8), confs=confs)
    with run.start() as driver:
        driver.succeed()
    run.check()
    batches = by_batch(logged.asked())[3:7]
    assert all(batch["DeleteObject offsets/N"] for batch in batches)
    assert set().union(*batches) == {"PutObject offsets/N", "PutObject commits/N", "DeleteObject offsets/N"}


def restarted(
    work: Path, server: Versitygw, partitions: int, files: int = 4, confs: Mapping[str, str] | None = None
) -> Counter[str]:
    """What a driver asks of the server that finds one batch to do, and every store to load."""
    kept = {**log_confs(), **(confs or {}), **ONCE, "spark.sql.shuffle.partitions": str(partitions)}
    run = on_s3(work, server, Aggregation.generate(files), confs=kept)
    query = replace(run.queries[0], checkpoint=f"{run.queries[0].checkpoint}-{work.name}")
    run.queries[0] = query
    last = query.input / "events" / f"{files - 1:04d}.json"
    last.rename(work / last.name)
    with run.start() as driver:
        driver.succeed()
    (work / last.name).rename(last)
    before = len(server.requests())
    with run.start() as driver:
        driver.succeed()
    run.check()
    return sum(by_batch(server.asked()[before:], f"query-0-{work.name}"), Counter())


def test_what_a_restart_asks_does_not_depend_on_the_number_of_partitions(tmp_path: Path, logged: Versitygw) -> None:
    few, many = (restarted(work_of(tmp_path, f"with-{count}"), logged, count) for count in (2, 16))
    assert few == many


def test_a_restart_asks_twice_more_for_each_entry_that_it_replays(tmp_path: Path, logged: Versitygw) -> None:
    few, many = (restarted(work_of(tmp_path, f"after-{files}"), logged, 4, files) for files in (4, 9))
    many.subtract(few)
    # What is asked for twice soon after each other the connector may have in memory.
    assert 4 <= many.pop("GetObject commits/N") <= 6
    assert {place: count for place, count in many.items() if count} == {"HeadObject commits/N": 5}


def test_a_restart_asks_twice_for_each_data_file_that_holds_snapshots(tmp_path: Path, logged: Versitygw) -> None:
    """Which is one for each store at most, as the entries hold what each of these snapshots lists."""
    stores = 16
    every = dstl(materialize__replayCost="100000") | {f"{STATE_STORE}.minDeltasForSnapshot": "1"}
    found = restarted(work_of(tmp_path, "with-snapshots"), logged, stores, confs=every)
    kinds: Counter[str] = Counter()
    for place, count in found.items():
        kinds[re.sub(r"dstl/data/.+", "dstl/data/F", place)] += count
    assert 0 < kinds["GetObject dstl/data/F"] <= stores
    assert kinds["HeadObject dstl/data/F"] == kinds["GetObject dstl/data/F"]
    assert not [place for place in kinds if re.search(r" state/0/([1-9]|0/(?!_metadata))", place)]


def test_a_driver_killed_around_its_commits_loses_and_repeats_nothing(tmp_path: Path, server: S3Process) -> None:
    confs = {**log_confs(), **LARGE_SEGMENTS}
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(), confs=confs)
    kill_drivers(run, {"driver.before-commit-entry": 0, "driver.seals-pending": 2, "driver.after-commit-entry": 3})
    finish(run)
    assert not server.unfinished_uploads()


def test_executors_that_die_while_they_write_and_load_snapshots_lose_nothing(tmp_path: Path, server: S3Process) -> None:
    # Only snapshots go to data files: a batch whose changes an executor is uploading when it dies fails, by name.
    small = dstl(batch__persistDelay="50ms", inline__maxSegmentSize="1000")
    confs = {**log_confs(), **ALWAYS_SNAPSHOTS, **small}
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(files=10, rows=30), master=CLUSTER, confs=confs)
    with run.start("executor.snapshot-uploaded=pause@1;driver.before-commit-entry=pause@6") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.snapshot-uploaded"))
        driver.wait_for_pause("driver.before-commit-entry")
        driver.kill()
    with run.start("executor.snapshot-loading=pause") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.snapshot-loading"))
        driver.succeed()
    check(run)


@pytest.mark.parametrize("conditional", ["true", "false"])
def test_of_two_drivers_on_one_checkpoint_the_late_one_stops(
    tmp_path: Path, server: S3Process, conditional: str
) -> None:
    """With conditional creation the server refuses the entry, without it the late one sees it first."""
    confs = {**log_confs(), "spark.hadoop.fs.s3a.create.conditional.enabled": conditional}
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(), confs=confs)
    first, _ = start_two(run)
    says_so = "does not create objects exclusively" in first.log()
    assert says_so == (conditional == "false"), first.failed("what it says of exclusive creation is wrong")


def test_two_drivers_that_start_at_once_leave_one_history(tmp_path: Path, server: S3Process) -> None:
    """One of them ends the query, or the next one does; whatever both wrote, state and sink are those of one."""
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(files=8))
    with run.start() as one, run.start() as other:
        codes = [one.wait(), other.wait()]
    if 0 not in codes:
        with run.start() as driver:
            driver.succeed()
    for driver, code in zip((one, other), codes, strict=True):
        # The last is Spark's own, where both have found no `metadata`.
        errors = ("[DSTL_", "CONCURRENT_STREAM_LOG_UPDATE", "SparkConcurrentModificationException")
        assert code == 0 or any(error in driver.log() for error in errors), driver.failed("it ended without a reason")
    check(run)


def test_data_files_may_be_in_another_bucket(tmp_path: Path, server: S3Process) -> None:
    confs = {**log_confs(), **dstl(inline__maxSegmentSize="0", basePath=f"s3a://{OTHER_BUCKET}/log")}
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(), confs=confs)
    kill_drivers(run, {"driver.before-commit-entry": 3})
    finish(run)
    assert server.keys("log/", OTHER_BUCKET)
    assert not [key for key in server.keys("") if "/dstl/data/" in key]


@dataclass(frozen=True)
class Continued(Aggregation):
    """A batch without data ends the first run, so that the last file is in the batch after it."""

    versions: ClassVar = [6]


def test_a_stock_checkpoint_is_taken_over(tmp_path: Path, server: S3Process) -> None:
    run = on_s3(work_of(tmp_path), server, Continued.generate(), confs=stock_confs())
    last = run.queries[0].input / "events" / "0005.json"
    last.rename(tmp_path / last.name)
    with run.start() as driver:
        driver.succeed()
    (tmp_path / last.name).rename(last)
    plain = [key for key in server.keys("") if key.endswith(".changelog")]
    run.confs.update(with_jars(log_confs()))
    run.has_plain_snapshots = True
    finish(run)
    assert [key for key in server.keys("") if key.endswith(".changelog")] == plain
