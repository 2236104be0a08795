"""The incidents of docs/cookbook.md in which stored objects are damaged or lost."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

import spark_dstl
from clicks import RETAIN_LITTLE, SNAPSHOTS, Clicks
from recipe import Recipe
from spark_dstl.checkpoint import activity
from spark_dstl.checkpoint.verification import verify
from spark_dstl.commands import console
from spark_facts import LOGS_SNAPSHOTS, REPAIRS_SNAPSHOTS
from test_stop_and_damage import damage


@pytest.fixture(autouse=True)
def looks_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(verify, "SECOND_LOOK_SECONDS", 0.01)


def test_a_damaged_commit_entry(tmp_path: Path, spark: SparkSession) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", files=5)
    entry = clicks.checkpoint / "commits" / "2"
    places = {"/checkpoints/clicks": clicks.checkpoint, "/backup/clicks": tmp_path / "backup"}
    with Recipe("A commit entry is damaged", places) as recipe:
        clicks.goes_on(4)
        shutil.copytree(clicks.checkpoint, tmp_path / "backup")
        damage(entry, "segment")
        recipe.sees(clicks.fails())
        recipe.sees(recipe.types(console.DAMAGED))
        recipe.sees(recipe.types())
        damage(entry, "segment")
        recipe.sees(recipe.types())
        clicks.forgets(after=1)
        clicks.goes_on()
        recipe.sees(recipe.types())
    clicks.is_right()


@pytest.mark.skipif(not REPAIRS_SNAPSHOTS, reason="this Spark loads no older snapshot where the newest is lost")
def test_a_lost_snapshot(tmp_path: Path, spark: SparkSession) -> None:
    clicks = Clicks.create(spark, tmp_path, files=36, settings=SNAPSHOTS)
    with Recipe("A snapshot is lost", {"/checkpoints/clicks": clicks.checkpoint}) as recipe:
        for path in goes_on_to_a_snapshot(clicks):
            path.unlink()
        before = unusable_snapshots(spark)
        clicks.goes_on(1)
        assert unusable_snapshots(spark) > before
        recipe.sees(recipe.types(console.DAMAGED))
        clicks.goes_on(4, RETAIN_LITTLE)
        while clicks.later and not is_intact(clicks.checkpoint):
            clicks.goes_on(4, RETAIN_LITTLE)
        recipe.sees(recipe.types())
    clicks.goes_on()
    clicks.is_right()


@pytest.mark.skipif(REPAIRS_SNAPSHOTS, reason="this Spark loads an older snapshot where the newest is lost")
@pytest.mark.skipif(not LOGS_SNAPSHOTS, reason="in this Spark snapshots are files, made when Spark makes them")
def test_a_lost_snapshot_stops_the_query_where_spark_loads_no_older_one_until_it_is_put_back(
    tmp_path: Path, spark: SparkSession
) -> None:
    clicks = Clicks.create(spark, tmp_path, files=36, settings=SNAPSHOTS)
    lost = {path: tmp_path / path.name for path in goes_on_to_a_snapshot(clicks)}
    for path, elsewhere in lost.items():
        path.rename(elsewhere)
    said = clicks.fails(1)
    assert "DSTL_MISSING_LOG_OBJECT" in said
    assert any(str(path) in said for path in lost)
    for path, elsewhere in lost.items():
        elsewhere.rename(path)
    clicks.goes_on()
    clicks.is_right()


def goes_on_to_a_snapshot(clicks: Clicks) -> list[Path]:
    """Let the query run until it has a snapshot to be loaded from, and return the data files of that."""
    clicks.goes_on(4)
    # They are made in the background, and are in the entry of a later batch.
    while clicks.later and not files_of_the_newest_snapshot(clicks.checkpoint):
        clicks.goes_on(4)
    found = files_of_the_newest_snapshot(clicks.checkpoint)
    assert found
    return found


def is_intact(root: Path) -> bool:
    with spark_dstl.open(str(root)) as checkpoint:
        return checkpoint.verify().is_intact


def files_of_the_newest_snapshot(root: Path) -> list[Path]:
    """The data files that a store would be loaded from; none as long as there is no snapshot."""
    with spark_dstl.open(str(root)) as checkpoint:
        snapshots = checkpoint.snapshots().to_pylist()
        newest = max(snapshots, key=lambda row: int(row["version"]), default={"batch": None})["batch"]
        segments = [] if newest is None else checkpoint.segments(newest).read_all().to_pylist()
    files = {file for row in segments if row["kind"] in ("sst", "snapshot") for file in row["files"]}
    return [root / "dstl" / file for file in files]


def unusable_snapshots(spark: SparkSession) -> int:
    """How many snapshots stores of this process could not be loaded from."""
    ours = cast(Any, spark.sparkContext._jvm).org.apache.spark.sql.execution.streaming.state.dstl
    return int(ours.DstlEnvironment.get().resources().replayMetrics().skippedSnapshot().value())
