# SPDX-License-Identifier: Apache-2.0
"""Queries are followed batch by batch: each change once and in order, over restarts, rollbacks and interruptions."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from invoked import dstl, ended, succeeded
from pyspark.sql import SparkSession

import spark_dstl
from clicks import Clicks
from contests import join_in, played, rows_of
from convertible import CONVERTIBLE
from settings import FORMAT_VERSION, IN_FULL
from settings import dstl as dstl_settings
from shared_session import Contest, Operator, contender
from spark_dstl import ChangedBatch
from spark_facts import JOIN_LAYOUTS, LINE
from width_operators import OPERATORS

if LINE < (4, 1):
    pytest.skip("this Spark cannot be followed", allow_module_level=True)
from width_processors import GROWING, LEDGER

IN_ONE_PARTITION = ("aggregation-without-keys-format-1", "limit")
IF_IN_FULL = pytest.mark.skipif(not IN_FULL, reason="like another, with the other checkpoint format")


def windows(changed: ChangedBatch) -> dict[tuple[str, str], tuple[int, int]]:
    """The newest value of each changed window of an aggregation."""
    found = {}
    for row in changed.changes.to_pylist():
        assert row["change_type"] == "update"
        start = row["key"]["window"]["start"]
        values = list(row["value"].values())
        found[f"{start:%Y-%m-%d %H:%M}", row["key"]["key"]] = (values[-2], values[-1])
    return found


def sink(clicks: Clicks, batch: int) -> list[tuple[int, int]]:
    """The counts and sums that a batch has sent to the sink, sorted."""
    rows = json.loads((clicks.query.output / f"{batch}.json").read_text())
    return sorted((row["count"], row["sum"]) for row in rows)


@pytest.mark.parametrize("version", [pytest.param(1, marks=IF_IN_FULL), 2])
def test_each_batch_is_followed_once_over_a_restart(spark: SparkSession, tmp_path: Path, version: int) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", 8, {FORMAT_VERSION: str(version)})
    clicks.resume(3)
    with spark_dstl.follow(str(clicks.checkpoint), after=0) as followed:
        first = list(followed.changes(waits=False))
        assert [one.batch for one in first] == [1, 2]
        assert list(followed.changes(waits=False)) == []
        clicks.resume(3)
        second = list(followed.changes(until=5))
        assert [one.batch for one in second] == [3, 4, 5]
        position = followed.position
    changed = [*first, *second]
    assert [one.is_new_run for one in changed] == [False, False, True, False, False]
    assert len({one.run for one in changed}) == 2
    for one in changed:
        assert sorted(windows(one).values()) == sink(clicks, one.batch), one.batch
    assert not list((clicks.checkpoint / "dstl/epochs").glob("*.pin"))
    clicks.resume()
    with spark_dstl.follow(str(clicks.checkpoint), after=position) as followed:
        assert [one.batch for one in followed.changes(waits=False)] == [6, 7]
    clicks.check()


def test_a_copy_of_what_was_rolled_back_is_read_anew(spark: SparkSession, tmp_path: Path) -> None:
    session, events, checkpoint = contender(spark, "dstl", 1), tmp_path / "events", tmp_path / "checkpoint"
    events.mkdir()

    def process(values: dict[int, int]) -> None:
        for number, value in values.items():
            (events / f"{number}.json").write_text(json.dumps({"key": 1, "value": value}))
        read = session.readStream.schema("key long, value long").option("maxFilesPerTrigger", 1).json(str(events))
        totals = read.groupBy("key").agg({"value": "sum"}).writeStream.outputMode("complete").format("noop")
        totals.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()

    process(dict.fromkeys(range(5), 1))
    with spark_dstl.open(str(checkpoint)) as opened, opened.follow(0, copies=True) as followed:
        assert [one.batch for one in followed.batches(waits=False)] == [1, 2, 3, 4]
        succeeded("rollback", checkpoint, "--to", "2", "--apply", "--stopped")
        assert list(followed.batches(waits=False)) == []
        assert followed.position.batch == 2
        process(dict.fromkeys((5, 6, 7), 1000))
        for batch, one in zip((3, 4, 5), followed.batches(waits=False), strict=True):
            assert one.batch == batch
            assert followed.get(1).value == opened.state(batch).read_all()["value"][0].as_py()


@pytest.mark.parametrize(
    "operator", [one for one in CONVERTIBLE if one.name in IN_ONE_PARTITION], ids=lambda of: of.name
)
def test_state_that_spark_keeps_in_one_partition_is_read(
    spark: SparkSession, tmp_path: Path, operator: Operator
) -> None:
    contest = played(spark, operator, tmp_path)
    with spark_dstl.open(str(contest.checkpoint)) as checkpoint, checkpoint.follow(0, copies=True) as followed:
        state = checkpoint.state().read_all()
        assert state.num_rows == 1
        changes = [one for one in followed.changes(waits=False) if one.changes.num_rows]
        assert checkpoint.changes(changes[-1].batch).read_all().num_rows == 1
        assert rows_of(followed.table(), "batch") == rows_of(state, "batch")


def test_an_entry_is_fetched_once_for_all_stores(spark: SparkSession, tmp_path: Path) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", 2)
    clicks.resume()
    entry = clicks.checkpoint / "commits/1"
    with spark_dstl.open(str(clicks.checkpoint)) as checkpoint, checkpoint.follow(0) as followed:
        fetched = followed._java.entry(1, entry.stat().st_size)
        followed._java.open(followed._reader.batch(1), followed._selection)
        entry.unlink()
        rows = followed._reader.rows(lambda port, token: followed._java.changes(fetched, port, token), ExitStack())
        assert {row["partition"] for row in rows.read_all().to_pylist()} == {0, 1}


def test_changes_in_data_files_below_a_configured_base_path_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    settings = dstl_settings(basePath=str(tmp_path / "log"), inline__maxSegmentSize="0")
    clicks = Clicks.create(spark, tmp_path / "query", 3, settings)
    clicks.resume()
    assert list((tmp_path / "log").rglob("*.log"))
    with spark_dstl.follow(str(clicks.checkpoint), after=-1) as followed:
        for one in followed.changes(waits=False):
            assert sorted(windows(one).values()) == sink(clicks, one.batch), one.batch
        assert followed.position.batch == 2


def test_changes_in_plain_files_are_not_taken_for_none(spark: SparkSession, tmp_path: Path) -> None:
    """The entries that a query writes with `enabled=false` have a log, and no changes in it."""
    clicks = Clicks.create(spark, tmp_path / "query", 4)
    clicks.resume(2)
    clicks.resume(confs=dstl_settings(enabled="false"))
    with spark_dstl.open(str(clicks.checkpoint)) as checkpoint:
        with checkpoint.follow(1) as followed:
            changes = followed.changes(waits=False)
            with pytest.raises(spark_dstl.UnreadableState, match=r"batch 2 .* plain files"):
                next(changes)
        with checkpoint.follow(2, copies=True) as followed:
            assert list(followed.batches(waits=False)) == []
            assert (followed.position.batch, followed.starts) == (3, 2)
            assert rows_of(followed.table()) == rows_of(checkpoint.state(3).read_all())


CASES = [
    pytest.param(OPERATORS[1], 1, id="join-with-a-store-for-each-kind", marks=IF_IN_FULL),
    *(
        pytest.param(join_in(layout), version, id=f"join-with-column-families-{layout}-{version}", marks=marks)
        for layout, version, marks in ((3, 1, IF_IN_FULL), (3, 2, ()), (4, 1, IF_IN_FULL), (4, 2, IF_IN_FULL))
        if layout in JOIN_LAYOUTS
    ),
]


@pytest.mark.parametrize(("operator", "version"), CASES)
def test_changes_of_column_families_are_those_of_spark_s_reader(
    spark: SparkSession, tmp_path: Path, operator: Operator, version: int
) -> None:
    contest = played(spark, operator, tmp_path, version=version)
    compared = 0
    with spark_dstl.open(str(contest.checkpoint)) as checkpoint, checkpoint.follow(-1) as followed:
        for one in followed.changes(waits=False):
            theirs = checkpoint.changes(one.batch).read_all()
            assert rows_of(one.changes) == rows_of(theirs), one.batch
            compared += theirs.num_rows
    assert compared > 0


@pytest.mark.skipif(not IN_FULL, reason="like column families of a join")
def test_state_variables_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    contest = played(spark, LEDGER, tmp_path, "stock")
    with spark_dstl.open(str(contest.checkpoint)) as checkpoint, checkpoint.follow(-1) as followed:
        for one in followed.changes(waits=False):
            theirs = checkpoint.changes(one.batch).read_all()
            families = Counter(one.changes.column("column_family").to_pylist())
            assert families == Counter(theirs.column("column_family").to_pylist()), one.batch


def replayed(lists: dict[str, list[Any]], changes: pyarrow.RecordBatch | pyarrow.Table) -> None:
    """Apply change records to lists by their keys."""
    value = next(name for name in ("value", "list_element") if name in changes.schema.names)
    for row in changes.to_pylist():
        key = row["key"]["key"]
        if row["change_type"] != "append":
            lists.pop(key, None)
        if row["change_type"] != "delete":
            lists.setdefault(key, []).append(row[value]["value"])


def test_the_changes_of_lists_are_all_their_values(spark: SparkSession, tmp_path: Path) -> None:
    contest = played(spark, LEDGER, tmp_path, "stock")
    only = spark_dstl.Selection(column_family="recent")
    followed_lists: dict[str, list[Any]] = {}
    read_lists: dict[str, list[Any]] = {}
    longest = 0
    with spark_dstl.open(str(contest.checkpoint)) as checkpoint, checkpoint.follow(-1, only) as followed:
        for one in followed.changes(waits=False):
            replayed(followed_lists, one.changes)
            replayed(read_lists, checkpoint.changes(one.batch, only).read_all())
            lists: dict[str, list[Any]] = {}
            for row in checkpoint.state(one.batch, only).read_all().to_pylist():
                lists.setdefault(row["key"]["key"], []).append(row["list_element"]["value"])
            assert followed_lists == lists, one.batch
            assert read_lists == lists, one.batch
            longest = max([longest, *map(len, lists.values())])
    assert longest > 2


def test_a_schema_that_changes_at_a_restart_is_followed(spark: SparkSession, tmp_path: Path) -> None:
    contest = Contest(contender(spark, "stock"), GROWING, tmp_path)
    contest.run_first()
    with spark_dstl.open(str(contest.checkpoint)) as checkpoint, checkpoint.follow(-1, copies=True) as followed:
        before = list(followed.changes(waits=False))
        contest.run_rest()
        after = list(followed.changes(waits=False))
        assert after[0].is_new_run
        for one in (*before, *after):
            assert rows_of(one.changes) == rows_of(checkpoint.changes(one.batch).read_all()), one.batch
        assert {len(row["value"]) for one in after for row in one.changes.to_pylist()} == {2}
        assert rows_of(followed.table()) == rows_of(checkpoint.state().read_all())


def test_files_of_batches_are_complete_over_interruptions(spark: SparkSession, tmp_path: Path) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", 6)
    clicks.resume(4)
    to = tmp_path / "changes"
    follow = ("follow", clicks.checkpoint, "--to", to, "--no-wait", "--format", "jsonl")
    succeeded(*follow, "--from", "0", "--until", "2")
    assert sorted(path.name for path in to.iterdir()) == [*(f"{n:010d}.jsonl" for n in range(3)), "cursor.json"]
    before = {path.name: path.read_bytes() for path in to.iterdir()}
    # The command dies after a file and before its cursor: the file is written again.
    (to / "0000000002.jsonl").write_text("cut off")
    cursor = json.loads(before["cursor.json"])
    with spark_dstl.open(str(clicks.checkpoint)) as checkpoint:
        entry = checkpoint.entries(1).read_all().column("entry").to_pylist()[0]
    (to / "cursor.json").write_text(json.dumps({**cursor, "batch": 1, "entry": entry}))
    clicks.resume()
    succeeded(*follow)
    after = {path.name: path.read_bytes() for path in to.iterdir()}
    assert {name: after[name] for name in before if name != "cursor.json"} == {
        name: content for name, content in before.items() if name != "cursor.json"
    }
    assert json.loads(after["cursor.json"])["batch"] == 5
    rows = [json.loads(line) for n in range(6) for line in after[f"{n:010d}.jsonl"].splitlines()]
    assert sorted({row["batch"] for row in rows}) == list(range(6))
    succeeded(*follow)
    assert {path.name: path.read_bytes() for path in to.iterdir()} == after


def test_changes_are_printed_with_their_batch(spark: SparkSession, tmp_path: Path) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", 3)
    clicks.resume()
    printed = succeeded("follow", clicks.checkpoint, "--from", "1", "--until", "2", "--format", "jsonl")
    assert {json.loads(line)["batch"] for line in printed.stdout.splitlines()} == {1, 2}
    nothing = dstl("follow", clicks.checkpoint, "--no-wait")
    assert nothing.stdout == ""
    assert "Nothing to show after batch 2: --from N begins with an earlier batch." in nothing.stderr
    mistaken = ended(2, "follow", clicks.checkpoint, "--from", "2", "--until", "1")
    assert "--until 1 is before --from 2" in mistaken.stderr
