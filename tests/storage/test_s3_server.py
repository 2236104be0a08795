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
from harness import Run
from s3 import on_s3, with_jars
from scenarios import Aggregation
from servers import OTHER_BUCKET, Versitygw, versitygw
from settings import FORMAT_VERSION, dstl, log_confs, stock_confs

CLUSTER = "local-cluster[2,1,1024]"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Versitygw]:
    """A server of the test's own."""
    work = tmp_path / "server"
    work.mkdir()
    with versitygw(work) as server:
        yield server


def work_of(tmp_path: Path) -> Path:
    work = tmp_path / "run"
    work.mkdir()
    return work


def requests_by_batch(server: Versitygw) -> list[Counter[str]]:
    """Between one commit entry and the next: operations, by what they were asked of.

    Left out is what the file source asks of its own log, with state or without.
    """
    batches: list[Counter[str]] = [Counter()]
    for request in server.requests():
        place = re.sub(r"/\d+$", "/N", request.target.partition("/query-0/")[2])
        if not place.startswith("sources/") and "prefix=query-0%2Fsources" not in request.target:
            batches[-1][f"{request.operation} {place}"] += 1
        if place == "commits/N" and request.operation == "PutObject":
            batches.append(Counter())
    return batches


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_batch_with_small_changes_is_two_writes_and_nothing_else(
    tmp_path: Path, server: Versitygw, version: str
) -> None:
    confs = {**log_confs(), FORMAT_VERSION: version}
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(files=8), confs=confs)
    with run.start() as driver:
        driver.succeed()
    run.check()
    # The first ones find out what there is, and behind the last one the query ends.
    for batch in requests_by_batch(server)[3:7]:
        assert batch == {"PutObject offsets/N": 1, "PutObject commits/N": 1}
    run.check_state()


def restart_requests(server: Versitygw, run: Run, confs: Mapping[str, str]) -> Counter[str]:
    """What a driver asks of the server that finds nothing to do beyond loading every store."""
    before = len(server.requests())
    with run.start(confs=confs) as driver:
        driver.succeed()
    return Counter(request.operation for request in server.requests()[before:])


def test_what_a_restart_asks_does_not_depend_on_the_number_of_partitions(tmp_path: Path, server: Versitygw) -> None:
    asked = []
    for partitions in (2, 16):
        work = tmp_path / f"run-{partitions}"
        work.mkdir()
        confs = {**log_confs(), "spark.sql.shuffle.partitions": str(partitions)}
        run = on_s3(work, server, Aggregation.generate(files=4), confs=confs)
        run.queries[0] = replace(run.queries[0], checkpoint=f"{run.queries[0].checkpoint}-{partitions}")
        last = run.queries[0].input / "events" / "0003.json"
        last.rename(work / last.name)
        with run.start() as driver:
            driver.succeed()
        (work / last.name).rename(last)
        asked.append(restart_requests(server, run, {}))
        run.check()
    assert asked[0].total() == asked[1].total(), asked


def test_a_driver_killed_around_its_commits_loses_and_repeats_nothing(tmp_path: Path, server: Versitygw) -> None:
    confs = {**log_confs(), **LARGE_SEGMENTS}
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(), confs=confs)
    for point, batch in (
        ("driver.before-commit-entry", 0),
        ("driver.seals-pending", 2),
        ("driver.after-commit-entry", 3),
    ):
        with run.start(f"{point}=pause@{batch}") as driver:
            driver.wait_for_pause(point)
            driver.kill()
    finish(run)
    assert not server.unfinished_uploads()


def test_executors_that_die_while_they_write_and_load_snapshots_lose_nothing(tmp_path: Path, server: Versitygw) -> None:
    confs = {**log_confs(), **ALWAYS_SNAPSHOTS, **dstl(batch__persistDelay="50ms")}
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(files=10, rows=60), master=CLUSTER, confs=confs)
    with run.start("executor.snapshot-uploaded=pause@1;driver.before-commit-entry=pause@6") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.snapshot-uploaded"))
        driver.wait_for_pause("driver.before-commit-entry")
        driver.kill()
    with run.start("executor.snapshot-loading=pause") as driver:
        driver.kill_executor(driver.wait_for_pause("executor.snapshot-loading"))
        driver.succeed()
    run.check()
    run.check_state()


@pytest.mark.parametrize("conditional", ["true", "false"])
def test_of_two_drivers_on_one_checkpoint_the_late_one_stops(
    tmp_path: Path, server: Versitygw, conditional: str
) -> None:
    """With conditional creation the server refuses the entry, without it the late one sees it first."""
    confs = {**log_confs(), "spark.hadoop.fs.s3a.create.conditional.enabled": conditional}
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(), confs=confs)
    with run.start("driver.before-commit-entry=pause@3") as late:
        late.wait_for_pause("driver.before-commit-entry")
        with run.start() as first:
            first.succeed()
            says_so = "does not create objects exclusively" in first.log()
            assert says_so == (conditional == "false"), first.failed("what it says of exclusive creation is wrong")
        run.resume("driver.before-commit-entry")
        assert late.wait() != 0
        assert "[DSTL_FENCED]" in late.log(), late.failed("it does not say that it was fenced")
    run.check()
    run.check_state()


def test_two_drivers_that_start_at_once_leave_one_history(tmp_path: Path, server: Versitygw) -> None:
    """One of them ends the query, or the next one does; whatever both wrote, state and sink are those of one."""
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(files=8))
    with run.start() as one, run.start() as other:
        codes = [one.wait(), other.wait()]
    if 0 not in codes:
        with run.start() as driver:
            driver.succeed()
    for driver, code in zip((one, other), codes, strict=True):
        assert code == 0 or "[DSTL_" in driver.log() or "CONCURRENT_STREAM_LOG_UPDATE" in driver.log()
    run.check()
    run.check_state()


def test_data_files_may_be_in_another_bucket(tmp_path: Path, server: Versitygw) -> None:
    confs = {**log_confs(), **dstl(inline__maxSegmentSize="0", basePath=f"s3a://{OTHER_BUCKET}/log")}
    run = on_s3(work_of(tmp_path), server, Aggregation.generate(), confs=confs)
    with run.start("driver.before-commit-entry=pause@3") as driver:
        driver.wait_for_pause("driver.before-commit-entry")
        driver.kill()
    finish(run)
    assert server.keys("log/", OTHER_BUCKET)
    assert not [key for key in server.keys("") if "/dstl/data/" in key]


@dataclass(frozen=True)
class Continued(Aggregation):
    """A batch without data ends the first run, so that the last file is in the batch after it."""

    versions: ClassVar = [6]


def test_a_stock_checkpoint_is_taken_over(tmp_path: Path, server: Versitygw) -> None:
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


def finish(run: Run) -> None:
    """Start the queries again, let them end, and check everything, as another application sees it."""
    with run.start() as driver:
        driver.succeed()
    run.check()
    run.check_state()
