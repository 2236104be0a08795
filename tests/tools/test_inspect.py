# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of real queries are inspected, verified and rolled back without a JVM, during a run and afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from invoked import dstl
from pyspark.sql import SparkSession

import query_driver
import spark_dstl
from clicks import Clicks
from harness import Run
from imitation import imitation
from s3 import ROOT, environment
from scenarios import Aggregation
from servers import BUCKET, S3Server
from settings import FORMAT_VERSION, IN_FULL, STATE_STORE, log_confs
from settings import dstl as dstl_settings
from shared_session import contender

FILES = 6
# Each store makes a snapshot after almost every batch, which the next commit entry holds.
SNAPSHOTS = {
    **dstl_settings(materialize__replayCost="100000", batch__persistDelay="100ms"),
    f"{STATE_STORE}.minDeltasForSnapshot": "1",
}
# With the name of Spark's provider, snapshots are plain files.
PLAIN_SNAPSHOTS = {
    f"{STATE_STORE}.minDeltasForSnapshot": "1",
    f"{STATE_STORE}.maintenanceInterval": "100ms",
}


def new_run(work: Path, files: int, confs: dict[str, str]) -> Run:
    work.mkdir(parents=True)
    return Run.create(work, Aggregation.generate(files=files, rows=30), confs=confs)


def checkpoint_of(run: Run) -> Path:
    return Path(run.queries[0].checkpoint)


@pytest.fixture(scope="module", params=[1, 2])
def made(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished query with snapshots in its log. Tests do not change its checkpoint."""
    run = new_run(tmp_path_factory.mktemp("inspected") / "made", FILES, {})
    session = contender(spark, "dstl", request.param)
    for key, value in SNAPSHOTS.items():
        session.conf.set(key, value)
    query_driver.start(session, run.queries[0].spec()).awaitTermination()
    return run


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """An S3 server that the commands find by the environment."""
    with imitation() as server:
        for name, value in environment(server.address).items():
            monkeypatch.setenv(name, value)
        yield server


def test_the_checkpoint_of_a_finished_query_has_no_damage_and_lists_its_stores(made: Run) -> None:
    root = checkpoint_of(made)
    result = dstl("verify", root, "--deep")
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


def test_commands_print_the_same_for_a_checkpoint_on_s3(made: Run, s3: S3Server) -> None:
    there = f"{ROOT}/q"
    root = checkpoint_of(made)
    for path in root.rglob("*"):
        if path.is_file():
            s3.client.put_object(Bucket=BUCKET, Key=f"q/{path.relative_to(root)}", Body=path.read_bytes())
    for words in (("verify", "--deep"), ("ls", "versions"), ("show",), ("log", "--batch", "3")):
        result = dstl(words[0], there, *words[1:])
        assert result.exit_code == 0, result.output
    for same in (("log", "--segments", "--format", "csv"), ("ls", "operators")):
        assert dstl(same[0], root, *same[1:]).output == dstl(same[0], there, *same[1:]).output


@pytest.mark.usefixtures("short_looks")
def test_a_query_continues_from_the_batch_of_a_rollback(tmp_path: Path, spark: SparkSession) -> None:
    clicks = Clicks.create(spark, tmp_path / "run", FILES, {**SNAPSHOTS, FORMAT_VERSION: "2"})
    clicks.resume()
    root = clicks.checkpoint
    result = dstl("rollback", root, "--to", "2", "--apply", "--stopped")
    assert result.exit_code == 0, result.output
    assert clicks.run.committed(clicks.query) == {0, 1, 2}
    assert dstl("verify", root, "--deep").exit_code == 0
    clicks.delete_output(after=2)
    clicks.resume()
    # The file source has its own log, so one batch may read several files now.
    assert max(clicks.run.committed(clicks.query)) in range(3, FILES)
    clicks.check()
    result = dstl("verify", root, "--deep")
    assert result.exit_code == 0, result.output


@pytest.mark.usefixtures("short_looks")
def test_a_query_continues_after_an_interrupted_rollback(tmp_path: Path, spark: SparkSession) -> None:
    """Snapshots are plain files here, and the rolled back batches have left one."""
    clicks = Clicks.create(spark, tmp_path / "run", FILES, PLAIN_SNAPSHOTS, provider="stock")
    clicks.resume()
    root = clicks.checkpoint
    with spark_dstl.open(str(root)) as checkpoint:
        planned = checkpoint.plan_rollback(2).objects
    assert any(name.endswith(".zip") for name in planned)
    # It ends in the middle of batch 4: the commit entry is deleted, the offsets are not.
    for name in planned[: planned.index("offsets/4")]:
        (root / name).unlink()
    clicks.resume()
    clicks.check()
    result = dstl("verify", root, "--deep")
    assert result.exit_code == 0, result.output


def test_verify_finds_no_damage_while_a_query_runs(tmp_path: Path) -> None:
    """The query commits batches, makes snapshots and deletes entries and data files meanwhile."""
    confs = {
        **log_confs(),
        **SNAPSHOTS,
        **dstl_settings(inline__maxSegmentSize="0"),
        "spark.sql.streaming.minBatchesToRetain": "2",
        "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "0",
        f"{STATE_STORE}.maintenanceInterval": "100ms",
    }
    batches = 30 if IN_FULL else 15
    run = new_run(tmp_path / "run", batches, confs)
    root = checkpoint_of(run)
    query = run.queries[0]
    looks = 0
    with run.start() as driver:
        driver.wait_until((root / "commits/0").exists, "a commit")
        while query.written() < batches:
            result = dstl("verify", root, "--deep")
            assert result.exit_code == 0, result.output
            looks += 1
        driver.succeed()
    assert looks > 3
    assert min(run.committed(query)) > 3
    # The process may have exited before the run marked its end.
    result = dstl("gc", root, "--apply", "--stopped")
    assert result.exit_code == 0, result.output
    result = dstl("verify", root, "--deep")
    assert result.exit_code == 0
    assert "left over" not in result.output
