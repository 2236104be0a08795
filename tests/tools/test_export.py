# SPDX-License-Identifier: Apache-2.0
"""Stock Spark continues from an exported checkpoint."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_dstl
from copies import copied
from settings import IN_FULL, STATE_STORE, STOCK_PROVIDER
from shared_session import Moving, Operator, contender
from spark_dstl import CannotExport, Checkpoint, QuerySeemsToRun
from spark_dstl.checkpoint.export import export
from spark_dstl.checkpoint.export.export import Exported
from spark_dstl.checkpoint.storage import StoredObject
from spark_dstl.checkpoint.survey import numbered
from spark_dstl.errors import MissingLogObject
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


EXPORTED = {"aggregation": (OPERATORS[0], "dstl", 1)}
EXPORTED |= {"join-with-ids": (OPERATORS[1], "dstl", 2)} if 2 in FORMATS else {"join": (OPERATORS[1], "dstl", 1)}
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
    assert done.written > 0
    assert not done.kept
    assert not list(ours.checkpoint.glob("dstl"))
    assert not any(b"dstl" in path.read_bytes() for path in (ours.checkpoint / "offsets").iterdir())
    ours.finish(contender(spark, "spark", version))
    assert ours.batches == theirs.batches
    assert ours.states() == theirs.states()
    assert (ours.checkpoint / "commits" / str(done.newest + 1)).is_file()
    assert STOCK_PROVIDER in (ours.checkpoint / "offsets" / str(done.newest + 1)).read_text()


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    logged = begun(contender(spark, "dstl"), OPERATORS[0], tmp_path_factory.mktemp("logged")).checkpoint
    with spark_dstl.open(str(logged)) as checkpoint:
        # Until the application, which continues, has ended its uploads.
        exported(checkpoint, tmp_path_factory.mktemp("exported"))
    return logged


@pytest.mark.usefixtures("short_looks")
def test_a_repeated_export_rewrites_only_damaged_objects(tmp_path: Path, logged: Path) -> None:
    target = tmp_path / "target"
    with spark_dstl.open(str(logged)) as checkpoint:
        first = checkpoint.export(str(target), stopped=True)
        whole = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
        changelog, *others = sorted(target.rglob("*.changelog"))
        changelog.write_bytes(b"\0" * changelog.stat().st_size)
        others[0].write_bytes(b"too short")
        (target / "metadata").unlink()
        again = checkpoint.export(str(target), stopped=True)
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == whole
    assert again.written == 2
    assert again.kept == first.written - 2


@pytest.mark.usefixtures("short_looks")
def test_an_export_overwrites_no_foreign_objects(tmp_path: Path, logged: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "theirs").write_text("theirs")
    with spark_dstl.open(str(logged)) as checkpoint:
        with pytest.raises(CannotExport, match="state/theirs"):
            checkpoint.export(str(tmp_path), stopped=True)
        with pytest.raises(CannotExport, match="not apart"):
            checkpoint.export(str(logged / "inside"), stopped=True)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["theirs"]


@pytest.mark.usefixtures("short_looks")
@pytest.mark.parametrize("directory", ["offsets", "commits"])
def test_an_export_fails_when_a_query_deletes_what_it_has_listed(
    tmp_path: Path, logged: Path, monkeypatch: pytest.MonkeyPatch, directory: str
) -> None:
    running = tmp_path / "running"
    copied(logged, running)

    def listed_and_deleted(objects: list[StoredObject]) -> dict[int, StoredObject]:
        (running / directory / "0").unlink()
        return numbered(objects)

    monkeypatch.setattr(export, "numbered", listed_and_deleted)
    with (
        spark_dstl.open(str(running)) as checkpoint,
        pytest.raises(MissingLogObject, match=rf"{directory}/0 was deleted: a query runs on the checkpoint"),
    ):
        checkpoint.export(str(tmp_path / "target"), stopped=True)
    assert not (tmp_path / "target" / "offsets").exists()


@pytest.mark.usefixtures("short_looks")
def test_a_damaged_checkpoint_is_not_exported(tmp_path: Path, logged: Path) -> None:
    damaged = tmp_path / "damaged"
    copied(logged, damaged)
    newest = max(
        (path for path in (damaged / "commits").iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
    )
    content = newest.read_bytes()
    newest.write_bytes(content[:-100] + bytes(len(content[-100:])))
    with spark_dstl.open(str(damaged)) as checkpoint, pytest.raises(CannotExport, match="cannot be rebuilt"):
        checkpoint.export(str(tmp_path / "target"), stopped=True)
    assert not (tmp_path / "target").exists()
