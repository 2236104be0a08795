# SPDX-License-Identifier: Apache-2.0
"""Stock Spark continues from an exported checkpoint."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_dstl
from settings import IN_FULL, STATE_STORE, STOCK_PROVIDER
from shared_session import Moving, Operator, contender
from spark_dstl import Checkpoint, QuerySeemsToRun
from spark_dstl.checkpoint.export.export import Exported
from spark_facts import FORMATS, HAS_PROCESSORS, LOGS_SNAPSHOTS
from width_operators import OPERATORS

# Each version gets a snapshot at once; whether an entry holds the last depends on the time of its upload.
OFTEN = {f"{STATE_STORE}.dstl.materialize.replayCost": "100000", f"{STATE_STORE}.minDeltasForSnapshot": "1"}


def begun(session: SparkSession, operator: Operator, work: Path, uploads: bool = False) -> Moving:
    """A query that has run for some batches and is stopped; with `uploads` it has uploaded snapshots."""
    work.mkdir(exist_ok=True)
    contest = Moving(session, operator, work)
    query = contest._start(operator.query, processingTime="0 seconds")
    try:
        for number in range(Moving.BEFORE):
            contest._add(number, number + 1)
            query.processAllAvailable()
            deadline = time.monotonic() + 60
            # The first version gets no snapshot.
            while uploads and number > 0 and not list((contest.checkpoint / "dstl" / "data").rglob("*.log")):
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        query.stop()
    return contest


def exported(checkpoint: Checkpoint, target: Path) -> Exported:
    """Export as soon as the application, which continues, has ended its uploads."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return checkpoint.export(str(target), stopped=True)
        except QuerySeemsToRun:
            assert time.monotonic() < deadline


EXPORTED = {"join-with-ids": (OPERATORS[1], "dstl", 2)} if 2 in FORMATS else {"join": (OPERATORS[1], "dstl", 1)}
if IN_FULL:
    EXPORTED["aggregation"] = (OPERATORS[0], "dstl", 1)
if IN_FULL and 2 in FORMATS:
    EXPORTED["aggregation-with-ids"] = (OPERATORS[0], "dstl", 2)
if IN_FULL and HAS_PROCESSORS:
    from width_processors import LEDGER

    EXPORTED["transform-with-state"] = (LEDGER, "stock", 1)


@pytest.mark.parametrize(("operator", "provider", "version"), EXPORTED.values(), ids=EXPORTED.keys())
def test_stock_spark_continues_from_an_exported_checkpoint(
    tmp_path: Path, spark: SparkSession, operator: Operator, provider: str, version: int
) -> None:
    theirs = begun(contender(spark, "spark", version), operator, tmp_path / "spark")
    theirs.finish(contender(spark, "spark", version))
    logging = contender(spark, provider, version)
    for key, value in OFTEN.items():
        logging.conf.set(key, value)
    uploads = provider == "dstl" and LOGS_SNAPSHOTS
    ours = begun(logging, operator, tmp_path / "dstl", uploads)
    logged = ours.checkpoint
    ours.directory = "exported"
    with spark_dstl.open(str(logged)) as checkpoint:
        if uploads:
            assert "log" in checkpoint.snapshots().column("place").to_pylist()
        assert sum(checkpoint.stores().column("log_changelogs").to_pylist()) > 0
        done = exported(checkpoint, ours.checkpoint)
    logged.rename(tmp_path / "gone")
    assert done.written > 0
    assert not done.kept
    assert not list(ours.checkpoint.glob("dstl"))
    assert not any(b"dstl" in path.read_bytes() for path in (ours.checkpoint / "offsets").iterdir())
    ours.finish(contender(spark, "spark", version))
    assert ours.batches == theirs.batches
    assert ours.states() == theirs.states()
    assert (ours.checkpoint / "commits" / str(done.newest + 1)).is_file()
    assert STOCK_PROVIDER in (ours.checkpoint / "offsets" / str(done.newest + 1)).read_text()
