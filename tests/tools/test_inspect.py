# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of real queries are inspected, verified and rolled back without a JVM, during a run and afterwards."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from invoked import succeeded
from pyspark.sql import SparkSession

import spark_dstl
from clicks import RETAIN_LITTLE, Clicks
from driver_process import POLL_SECONDS
from settings import FORMAT_VERSION, IN_FULL, STATE_STORE
from settings import dstl as dstl_settings

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


@pytest.mark.parametrize("version", [1, 2])
def test_the_checkpoint_of_a_finished_query_has_no_damage_and_lists_its_stores(
    tmp_path: Path, spark: SparkSession, version: int
) -> None:
    clicks = Clicks.create(spark, tmp_path / "run", FILES, {**SNAPSHOTS, FORMAT_VERSION: str(version)})
    clicks.resume()
    root = clicks.checkpoint
    succeeded("verify", root, "--deep")
    with spark_dstl.open(str(root)) as checkpoint:
        stores = checkpoint.stores().to_pylist()
        summary = checkpoint.summary()
        assert checkpoint.snapshots().num_rows > 0
        (operator,) = checkpoint.operators().to_pylist()
    assert (operator["operator_name"], operator["partitions"]) == ("stateStoreSave", 2)
    assert [store["partition"] for store in stores] == [0, 1]
    assert all(store["snapshot"] is not None for store in stores)
    assert summary.newest_batch == max(clicks.run.committed(clicks.query))
    assert summary.stores_without_snapshot == 0
    assert summary.provider == "DstlStateStoreProvider"


@pytest.mark.usefixtures("short_looks")
def test_a_query_continues_after_an_interrupted_rollback(tmp_path: Path, spark: SparkSession) -> None:
    """Snapshots are plain files here, and the rolled back batches have left one."""
    clicks = Clicks.create(spark, tmp_path / "run", FILES, PLAIN_SNAPSHOTS, provider="stock")
    clicks.resume()
    root = clicks.checkpoint

    def interrupt(what: str, done: int, _: int) -> None:
        # In the middle of batch 4: the commit entry is deleted, the offsets are not.
        if what == "Deleting" and done == planned.objects.index("offsets/4"):
            raise KeyboardInterrupt

    with spark_dstl.open(str(root), progress=interrupt) as checkpoint:
        planned = checkpoint.plan_rollback(2)
        assert any(name.endswith(".zip") for name in planned.objects)
        with pytest.raises(KeyboardInterrupt):
            checkpoint.apply_rollback(planned)
    assert not (root / "commits/4").exists()
    assert (root / "offsets/4").exists()
    clicks.resume()
    clicks.check()
    succeeded("verify", root, "--deep")


def test_verify_finds_no_damage_while_a_query_runs(tmp_path: Path, spark: SparkSession) -> None:
    """The query commits batches, makes snapshots and deletes entries and data files meanwhile."""
    settings = {
        **SNAPSHOTS,
        **RETAIN_LITTLE,
        **dstl_settings(inline__maxSegmentSize="0"),
        f"{STATE_STORE}.maintenanceInterval": "100ms",
    }
    clicks = Clicks.create(spark, tmp_path / "run", 30 if IN_FULL else 15, settings)
    root = clicks.checkpoint
    looks = 0
    with ThreadPoolExecutor() as beside:
        running = beside.submit(clicks.resume)
        while not running.done() and not (root / "commits/0").exists():
            time.sleep(POLL_SECONDS)
        while not running.done():
            succeeded("verify", root, "--deep")
            looks += 1
        running.result()
    clicks.check()
    assert looks > 3
    assert min(clicks.run.committed(clicks.query)) > 3
    succeeded("gc", root, "--apply", "--stopped")
    assert "left over" not in succeeded("verify", root, "--deep").output
