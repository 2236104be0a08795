# SPDX-License-Identifier: Apache-2.0
"""Another application reads the state of a running query with each of Spark's readers, as on stock Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import query_driver
import spark_dstl
from harness import Run
from scenarios import Aggregation
from settings import STATE_STORE, log_confs, stock_confs
from shared_session import contender
from spark_facts import UNLOADS_ON_COMMIT

COMMITTED = 4
PARTITIONS = 2
# A store that is unloaded after each batch makes its snapshots during the commit.
SNAPSHOTS = {
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    f"{STATE_STORE}.unloadOnCommit": "true",
    f"{STATE_STORE}.minDeltasForSnapshot": "2",
    f"{STATE_STORE}.maintenanceInterval": "100ms",
}


def rows(session: SparkSession, source: str, checkpoint: str, **options: Any) -> list[str]:
    """The rows of a data source for a checkpoint."""
    read = session.read.format(source).options(**options).load(checkpoint)
    return sorted(str(row) for row in read.collect())


def metadata(session: SparkSession, checkpoint: str) -> list[str]:
    return rows(session, "state-metadata", checkpoint)


def last(session: SparkSession, checkpoint: str) -> list[str]:
    return rows(session, "statestore", checkpoint)


def earlier(session: SparkSession, checkpoint: str) -> list[str]:
    return rows(session, "statestore", checkpoint, batchId=1)


def changes(session: SparkSession, checkpoint: str) -> list[str]:
    return rows(session, "statestore", checkpoint, readChangeFeed="true", changeStartBatchId=1, changeEndBatchId=3)


def snapshot_of(checkpoint: str, partition: int) -> int:
    """The version of the first snapshot of a partition."""
    with spark_dstl.open(checkpoint) as opened:
        found = [row["version"] for row in opened.snapshots().to_pylist() if row["partition"] == partition]
    return int(min(found))


def from_snapshots(session: SparkSession, checkpoint: str) -> list[str]:
    """Every partition, rebuilt from its first snapshot and the changelogs after it."""
    found = []
    for partition in range(PARTITIONS):
        options = {
            "batchId": COMMITTED - 1,
            "snapshotStartBatchId": snapshot_of(checkpoint, partition) - 1,
            "snapshotPartitionId": partition,
        }
        found += rows(session, "statestore", checkpoint, **options)
    return sorted(found)


def test_spark_s_state_readers_return_the_same_as_on_stock_spark(tmp_path: Path, spark: SparkSession) -> None:
    """The query is paused before the commit entry of a further batch, whose changes no reader may return."""
    (tmp_path / "spark").mkdir()
    (tmp_path / "dstl").mkdir()
    theirs = Run.create(tmp_path / "spark", Aggregation.generate(files=COMMITTED, rows=30), confs=stock_confs())
    ours = Run.create(
        tmp_path / "dstl", Aggregation.generate(files=COMMITTED + 2, rows=30), confs={**log_confs(), **SNAPSHOTS}
    )
    stock = contender(spark, "spark")
    # The paused query runs no batch without input.
    stock.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    with ours.start(f"driver.before-commit-entry=pause@{COMMITTED}") as driver:
        query_driver.start(stock, theirs.queries[0].spec()).awaitTermination()
        driver.wait_for_pause("driver.before-commit-entry")
        application = contender(spark, "dstl")
        at_rest, running = theirs.queries[0].checkpoint, ours.queries[0].checkpoint
        for read in (metadata, last, earlier, changes):
            assert read(application, running) == read(stock, at_rest), read.__name__
        if UNLOADS_ON_COMMIT:
            assert from_snapshots(application, running) == last(stock, at_rest)
        ours.resume("driver.before-commit-entry")
        driver.succeed()
    ours.check()
