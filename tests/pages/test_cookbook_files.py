# SPDX-License-Identifier: Apache-2.0
"""The incidents of docs/cookbook.md with damaged or lost objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from verified import verified

import spark_dstl
from clicks import RETAIN_LITTLE, SNAPSHOTS, Clicks
from copies import copied
from recipe import Recipe
from settings import FORMAT_VERSION
from spark_dstl.commands import console
from spark_facts import LOGS_SNAPSHOTS, REPAIRS_SNAPSHOTS

pytestmark = pytest.mark.usefixtures("short_looks")


def test_a_damaged_commit_entry(tmp_path: Path, spark: SparkSession) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", files=5, settings={FORMAT_VERSION: "2"})
    entry = clicks.checkpoint / "commits" / "2"
    places = {"/checkpoints/clicks": clicks.checkpoint, "/backup/clicks": tmp_path / "backup"}
    with Recipe("A commit entry is damaged", places) as recipe:
        clicks.resume(4)
        copied(clicks.checkpoint, tmp_path / "backup")
        damage(entry)
        recipe.sees(clicks.fail())
        recipe.sees(recipe.types(console.DAMAGED))
        recipe.sees(recipe.types())
        damage(entry)
        recipe.sees(recipe.types())
        clicks.delete_output(after=1)
        clicks.resume()
        recipe.sees(recipe.types())
    clicks.check()


@pytest.mark.skipif(not REPAIRS_SNAPSHOTS, reason="this Spark loads no older snapshot where the newest is lost")
def test_a_lost_snapshot(tmp_path: Path, spark: SparkSession) -> None:
    clicks = Clicks.create(spark, tmp_path, files=36, settings=SNAPSHOTS)
    with Recipe("A snapshot is lost", {"/checkpoints/clicks": clicks.checkpoint}) as recipe:
        for path in run_to_a_snapshot(clicks):
            path.unlink()
        before = unusable_snapshots(spark)
        clicks.resume(1)
        assert unusable_snapshots(spark) > before
        recipe.sees(recipe.types(console.DAMAGED))
        clicks.resume(4, RETAIN_LITTLE)
        while clicks.later and verified(clicks.checkpoint).is_damaged:
            clicks.resume(4, RETAIN_LITTLE)
        recipe.sees(recipe.types())
    clicks.resume(2)
    clicks.check()


@pytest.mark.skipif(REPAIRS_SNAPSHOTS, reason="this Spark loads an older snapshot where the newest is lost")
@pytest.mark.skipif(not LOGS_SNAPSHOTS, reason="in this Spark snapshots are files, made when Spark makes them")
def test_a_query_on_an_older_spark_fails_until_a_lost_snapshot_is_restored(tmp_path: Path, spark: SparkSession) -> None:
    clicks = Clicks.create(spark, tmp_path, files=36, settings=SNAPSHOTS)
    lost = {path: tmp_path / path.name for path in run_to_a_snapshot(clicks)}
    for path, elsewhere in lost.items():
        path.rename(elsewhere)
    said = clicks.fail(1)
    assert "DSTL_MISSING_LOG_OBJECT" in said
    assert any(str(path) in said for path in lost)
    for path, elsewhere in lost.items():
        elsewhere.rename(path)
    clicks.resume(2)
    clicks.check()


def damage(entry: Path) -> None:
    """Change a byte of the changelogs in a commit entry, or change it back."""
    content = bytearray(entry.read_bytes())
    content[content.index(b"DSTLLOG\n") + 29] ^= 0xFF
    entry.write_bytes(content)
    # Hadoop's local file system would find the damage first.
    entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)


def run_to_a_snapshot(clicks: Clicks) -> list[Path]:
    """Run the query until it has a snapshot; returns the data files of the newest one."""
    clicks.resume(4)
    # Snapshots are uploaded in the background and listed by the entry of a later batch.
    while clicks.later and not files_of_the_newest_snapshot(clicks.checkpoint):
        clicks.resume(4)
    found = files_of_the_newest_snapshot(clicks.checkpoint)
    assert found
    return found


def files_of_the_newest_snapshot(root: Path) -> list[Path]:
    """The data files of the newest snapshot, if there is one."""
    with spark_dstl.open(str(root)) as checkpoint:
        snapshots = checkpoint.snapshots().to_pylist()
        newest = max(snapshots, key=lambda row: int(row["version"]), default={"batch": None})["batch"]
        segments = [] if newest is None else checkpoint.segments(newest).read_all().to_pylist()
    files = {file for row in segments if row["kind"] in ("snapshot", "snapshot file") for file in row["files"]}
    return [root / "dstl" / file for file in files]


def unusable_snapshots(spark: SparkSession) -> int:
    """The number of snapshots that stores of this process could not load."""
    ours = cast(Any, spark.sparkContext._jvm).org.apache.spark.sql.execution.streaming.state.dstl
    return int(ours.DstlEnvironment.get().resources().replayMetrics().skippedSnapshot().value())
