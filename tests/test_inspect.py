"""Checkpoints of real queries, inspected, verified and rolled back without a JVM, while they run and afterwards."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import query_driver
import spark_dstl
from harness import Query, Run
from imitation import imitation
from s3 import ROOT, environment
from scenarios import Aggregation
from servers import BUCKET, S3Server
from settings import FORMAT_VERSION, STATE_STORE, dstl, log_confs, stock_confs
from shared_session import contender
from spark_dstl.commands import console, main

FILES = 6
# A snapshot of each store after almost every batch, in the entry that follows.
SNAPSHOTS = {
    **dstl(materialize__replayCost="100000", batch__persistDelay="100ms"),
    f"{STATE_STORE}.minDeltasForSnapshot": "1",
}
# With the name of Spark's provider snapshots are plain files.
PLAIN_SNAPSHOTS = {
    **log_confs(),
    **stock_confs(),
    f"{STATE_STORE}.minDeltasForSnapshot": "1",
    f"{STATE_STORE}.maintenanceInterval": "100ms",
}


def command(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="dstl")


def new_run(work: Path, files: int = FILES, confs: dict[str, str] | None = None) -> Run:
    work.mkdir(parents=True)
    return Run.create(work, Aggregation.generate(files=files, rows=30), confs=confs or {})


def run_to_the_end(run: Run) -> None:
    """In a process of its own, whose executors know nothing but what is on storage."""
    with run.start() as driver:
        driver.succeed()


def checkpoint_of(run: Run) -> Path:
    return Path(run.queries[0].checkpoint)


@pytest.fixture(scope="module", params=[1, 2])
def made(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A query that has come to its end, with state in the log and snapshots in it; not to be changed."""
    run = new_run(tmp_path_factory.mktemp("inspected") / "made")
    session = contender(spark, "dstl", request.param)
    for key, value in SNAPSHOTS.items():
        session.conf.set(key, value)
    query_driver.start(session, run.queries[0].spec()).awaitTermination()
    return run


@pytest.fixture
def copied(made: Run, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint_of(made), tmp_path / "copied"))


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A server that speaks S3's protocol, which the commands find."""
    with imitation() as server:
        for name, value in environment(server.address).items():
            monkeypatch.setenv(name, value)
        yield server


def test_a_checkpoint_of_a_query_is_intact_and_tells_what_is_in_it(made: Run) -> None:
    root = checkpoint_of(made)
    result = command("verify", str(root), "--deep")
    assert result.exit_code == 0, result.output
    with spark_dstl.open(str(root)) as checkpoint:
        stores = checkpoint.stores().to_pylist()
        summary = checkpoint.summary()
        assert checkpoint.snapshots().num_rows > 0
        (operator,) = checkpoint.operators().to_pylist()
    assert (operator["operator_name"], operator["partitions"]) == ("stateStoreSave", 2)
    assert [store["partition"] for store in stores] == [0, 1]
    assert all(store["snapshot"] is not None for store in stores)
    assert summary.newest_batch == max(made.committed(made.queries[0]))
    assert summary.stores_without_snapshot == 0
    assert summary.provider == "DstlStateStoreProvider"


def test_it_is_read_from_s3_as_well(made: Run, s3: S3Server) -> None:
    there = f"{ROOT}/q"
    root = checkpoint_of(made)
    for path in root.rglob("*"):
        if path.is_file():
            s3.client.put_object(Bucket=BUCKET, Key=f"q/{path.relative_to(root)}", Body=path.read_bytes())
    for words in (("verify", "--deep"), ("ls", "versions"), ("show",), ("log", "--batch", "3")):
        result = command(words[0], there, *words[1:])
        assert result.exit_code == 0, result.output
    for same in (("log", "--segments", "--format", "csv"), ("ls", "operators")):
        assert command(same[0], str(root), *same[1:]).output == command(same[0], there, *same[1:]).output


def test_a_query_goes_on_from_the_batch_it_was_rolled_back_to(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run", confs={**log_confs(), **SNAPSHOTS, FORMAT_VERSION: "2"})
    run_to_the_end(run)
    root = checkpoint_of(run)
    newest = max(run.committed(run.queries[0]))
    result = command("rollback", str(root), "--to", "2", "--apply", "--stopped")
    assert result.exit_code == 0, result.output
    assert run.committed(run.queries[0]) == {0, 1, 2}
    assert command("verify", str(root), "--deep").exit_code == 0
    forget(run.queries[0], 2)
    run_to_the_end(run)
    assert max(run.committed(run.queries[0])) in range(3, newest + 1)
    run.check()
    result = command("verify", str(root), "--deep")
    assert result.exit_code == 0, result.output


def test_a_query_goes_on_from_wherever_a_rollback_was_interrupted(tmp_path: Path) -> None:
    """Where snapshots are plain files, one of which an abandoned batch has left."""
    run = new_run(tmp_path / "run", confs=PLAIN_SNAPSHOTS)
    run_to_the_end(run)
    root = checkpoint_of(run)
    with spark_dstl.open(str(root)) as checkpoint:
        planned = checkpoint.plan_rollback(2).objects
    assert any(name.endswith(".zip") for name in planned)
    # In the middle of a batch: its commit entry has gone, its offsets have not.
    for name in planned[: planned.index("offsets/4")]:
        (root / name).unlink()
    run_to_the_end(run)
    run.check()
    result = command("verify", str(root), "--deep")
    assert result.exit_code == 0, result.output


def test_damage_is_named_and_the_way_back_leads_to_a_query_that_runs(tmp_path: Path) -> None:
    # No store is snapshotted in so short a time: all later batches need the damaged one.
    run = new_run(tmp_path / "run", confs=log_confs())
    run_to_the_end(run)
    root = checkpoint_of(run)
    entry = root / "commits/4"
    content = bytearray(entry.read_bytes())
    content[content.index(b"DSTLLOG\n") + 24 + 5] ^= 0xFF
    entry.write_bytes(bytes(content))
    result = command("verify", str(root), "--deep")
    assert result.exit_code == console.DAMAGED
    assert f"damage: {entry} at offset " in result.output
    (back,) = re.findall(r"^  dstl (rollback .*)$", result.output, re.MULTILINE)
    assert back == f"rollback {root} --to 3"
    assert command(*back.split(), "--apply", "--stopped").exit_code == 0
    forget(run.queries[0], 3)
    run_to_the_end(run)
    run.check()
    assert command("verify", str(root), "--deep").exit_code == 0


def test_nothing_that_a_running_query_does_is_damage(tmp_path: Path) -> None:
    """It commits, snapshots and lets go of entries and data files all the time."""
    confs = {
        **log_confs(),
        **SNAPSHOTS,
        **dstl(inline__maxSegmentSize="0"),
        "spark.sql.streaming.minBatchesToRetain": "2",
        "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "0",
        f"{STATE_STORE}.maintenanceInterval": "100ms",
    }
    run = new_run(tmp_path / "run", files=30, confs=confs)
    root = checkpoint_of(run)
    query = run.queries[0]
    looks = 0
    with run.start() as driver:
        driver.wait_until((root / "commits/0").exists, "a commit")
        while query.written() < 30:
            result = command("verify", str(root), "--deep")
            assert result.exit_code == 0, result.output
            looks += 1
        driver.succeed()
    assert looks > 3
    assert min(run.committed(query)) > 3
    # Whether the run has marked its end is not sure: the process may have exited first.
    result = command("gc", str(root), "--apply", "--stopped")
    assert result.exit_code == 0, result.output
    result = command("verify", str(root), "--deep")
    assert result.exit_code == 0
    assert "left over" not in result.output


def test_objects_that_go_leave_the_copy_as_it_is(copied: Path) -> None:
    """The copy of a checkpoint is one: nothing in it names its place."""
    assert command("verify", str(copied), "--deep").exit_code == 0
    assert f"checkpoint       {copied}" in command("show", str(copied)).output


def forget(query: Query, batch: int) -> None:
    """Remove the output of later batches from the sink, as a rollback requires."""
    for path in query.output.glob("*.json"):
        if int(path.stem) > batch:
            path.unlink()
