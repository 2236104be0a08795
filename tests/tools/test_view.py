# SPDX-License-Identifier: Apache-2.0
"""The local copy of a follower is the state as of the newest batch that was applied, in each table."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_dstl
from clicks import RETAIN_LITTLE, SNAPSHOTS, Clicks
from settings import IN_FULL
from shared_session import Contest, contender
from spark_dstl import Checkpoint, Followed, Selection
from spark_facts import JOIN_LAYOUTS, LINE
from width_operators import OPERATORS

if LINE < (4, 1):
    pytest.skip("this Spark cannot be followed", allow_module_level=True)
from width_processors import LEDGER

IF_IN_FULL = pytest.mark.skipif(not IN_FULL, reason="like another, with the other checkpoint format")
JOIN = "spark.sql.streaming.join.stateFormatVersion"


def rows_of(table: Any) -> Counter[str]:
    """Rows in no order."""
    return Counter(repr(sorted(row.items())) for row in table.to_pylist())


def joins(layout: int) -> Any:
    return replace(OPERATORS[1], confs={JOIN: str(layout), f"{JOIN[:-7]}V4.enabled": "true"})


def newest(contest: Contest) -> int:
    return max(int(entry.name) for entry in (contest.checkpoint / "commits").iterdir() if entry.name.isdigit())


CASES = [
    pytest.param(OPERATORS[0], "dstl", 2, id="aggregation"),
    pytest.param(OPERATORS[1], "dstl", 1, id="join-with-a-store-for-each-kind", marks=IF_IN_FULL),
    *(
        pytest.param(joins(layout), "dstl", version, id=f"join-{layout}-{version}", marks=marks)
        for layout, version, marks in ((3, 1, IF_IN_FULL), (3, 2, IF_IN_FULL), (4, 1, IF_IN_FULL), (4, 2, ()))
        if layout in JOIN_LAYOUTS
    ),
    pytest.param(LEDGER, "stock", 1, id="variables-and-timers"),
    pytest.param(LEDGER, "stock", 2, id="variables-and-timers-with-ids", marks=IF_IN_FULL),
]


@pytest.mark.parametrize(("operator", "provider", "version"), CASES)
def test_the_copy_is_the_state_as_of_each_batch(
    spark: SparkSession, tmp_path: Path, operator: Any, provider: str, version: int
) -> None:
    contest = Contest(contender(spark, provider, version), operator, tmp_path)
    contest.run()
    compared = 0
    with spark_dstl.open(str(contest.checkpoint)) as checkpoint, checkpoint.follow(0, copies=True) as followed:
        for position in followed.batches(waits=False):
            # Reading the state in the checkpoint takes a second or more.
            if not IN_FULL and position.batch != newest(contest) and position.batch != 2:
                continue
            copied = followed.table()
            assert rows_of(copied) == rows_of(checkpoint.state(position.batch).read_all()), position
            assert copied.schema.metadata[b"batch"] == str(position.batch).encode()
            compared += copied.num_rows
    assert compared > 0


def test_keys_are_looked_up_as_of_the_newest_followed_batch(spark: SparkSession, tmp_path: Path) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", 5)
    clicks.resume(3)
    with spark_dstl.follow(str(clicks.checkpoint), after=1) as followed:
        before = rows_of(followed.table())
        for row in followed.table().to_pylist():
            found = followed.get(row["key"])
            assert (found.value, found.partition, found.batch) == (row["value"], row["partition"], 1)
            assert found.age is not None
            assert found.age.total_seconds() > 0
            assert followed.get(tuple(row["key"].values()), store="").value == row["value"]
        assert followed.table(Selection(partition=0)).num_rows < followed.table().num_rows
        prefix = followed.table(Selection(where=f"key.key = '{row['key']['key']}'"))
        assert {one["key"]["key"] for one in prefix.to_pylist()} == {row["key"]["key"]}

        entry = clicks.checkpoint / "commits/2"
        content = entry.read_bytes()
        steps = followed.batches(waits=False)
        look = followed._java.entry(2, entry.stat().st_size)
        entry.unlink()
        followed._advance(2, None, look)
        entry.write_bytes(content)
        assert rows_of(followed.table()) != before, "the entry was fetched once"

        clicks.resume()
        assert [one.batch for one in steps] == [3, 4]
        for row in followed.table().to_pylist():
            assert followed.get(row["key"]) == replace(followed.get(row["key"]), value=row["value"], batch=4)
        missing = followed.get({**row["key"], "key": "missing"})
        assert (missing.value, missing.partition, missing.batch) == (None, None, 4)
        for wrong in ({"key": "a"}, "a", ("a",), {**row["key"], "key": 1}, {**row["key"], "window": {"start": 1}}):
            with pytest.raises(spark_dstl.InvalidKey, match=r"window \(struct<.*, key \(string\)"):
                followed.get(wrong)
        with pytest.raises(spark_dstl.UnreadableState, match="there is: operator 0"):
            followed.get("a", operator=7)
        with pytest.raises(spark_dstl.ResultTooLarge, match="more than 1 rows"):
            followed.table(max_rows=1)
        assert followed.table(max_rows=10_000).num_rows > 1


@pytest.mark.usefixtures("short_looks")
def test_a_copy_starts_anew_after_a_rollback_and_when_it_falls_behind(spark: SparkSession, tmp_path: Path) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", 20, {**RETAIN_LITTLE, **SNAPSHOTS})
    clicks.resume(3)
    with spark_dstl.open(str(clicks.checkpoint)) as checkpoint, checkpoint.follow(copies=True) as followed:
        assert followed._pin is not None
        followed._pin.end()
        clicks.resume(8)
        list(followed.batches(waits=False))
        assert (followed.position.batch, followed.starts) == (10, 2)
        check(followed, checkpoint)
        with checkpoint.pin(9):
            checkpoint.apply_rollback(checkpoint.plan_rollback(9), stopped=True)
        clicks.delete_output(9)
        clicks.resume(2)
        (changed,) = followed.changes(waits=False, until=12) if followed.starts == 2 else ()
        assert changed.is_new_start


def check(followed: Followed, checkpoint: Checkpoint) -> None:
    """The copy is the state as of its batch."""
    assert rows_of(followed.table()) == rows_of(checkpoint.state(followed.position.batch).read_all())
