# SPDX-License-Identifier: Apache-2.0
"""The local copy of a follower is the state as of the newest batch that was applied, in each table."""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight
from pyspark.sql import SparkSession

import spark_dstl
from clicks import Clicks
from contests import join_in, played, rows_of
from harness import free_port
from serving_process import serving
from settings import IN_FULL
from spark_dstl import Selection
from spark_dstl.release import installed_line
from spark_facts import JOIN_LAYOUTS, LINE
from width_operators import OPERATORS

if LINE < (4, 1):
    pytest.skip("this Spark cannot be followed", allow_module_level=True)
from width_processors import LEDGER

IF_IN_FULL = pytest.mark.skipif(not IN_FULL, reason="like another, with another operator or format")


CASES = [
    pytest.param(OPERATORS[0], "dstl", 2, id="aggregation", marks=IF_IN_FULL),
    *(
        pytest.param(join_in(layout), "dstl", version, id=f"join-{layout}-{version}", marks=IF_IN_FULL)
        for layout in (2, *JOIN_LAYOUTS)
        for version in (1, 2)
    ),
    pytest.param(LEDGER, "stock", 1, id="variables-and-timers"),
    pytest.param(LEDGER, "stock", 2, id="variables-and-timers-with-ids", marks=IF_IN_FULL),
]


@pytest.mark.parametrize(("operator", "provider", "version"), CASES)
def test_the_copy_is_the_state_as_of_each_batch(
    spark: SparkSession, tmp_path: Path, operator: Any, provider: str, version: int
) -> None:
    contest = played(spark, operator, tmp_path, provider, version)
    compared = 0
    with spark_dstl.open(str(contest.checkpoint)) as checkpoint, checkpoint.follow(0, copies=True) as followed:
        for position in followed.batches(waits=False):
            # Reading the state in the checkpoint takes a second or more.
            if not IN_FULL and position.batch != contest.newest and position.batch != 2:
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

        steps = followed.batches(waits=False)
        look = followed._java.entry(2, (clicks.checkpoint / "commits/2").stat().st_size)
        clicks.checkpoint.rename(tmp_path / "elsewhere")
        followed._advance(2, None, look)
        assert rows_of(followed.table()) != before, "the entry was all that it reads"
        (tmp_path / "elsewhere").rename(clicks.checkpoint)

        clicks.resume()
        assert [one.batch for one in steps] == [3, 4]
        for row in followed.table().to_pylist():
            found = followed.get(row["key"])
            assert (found.value, found.batch) == (row["value"], 4)
        missing = followed.get({**row["key"], "key": "missing"})
        assert (missing.value, missing.partition, missing.batch) == (None, None, 4)
        several = followed.table().to_pylist()
        keys = [one["key"] for one in several]
        answers = followed.get_many([*keys, {**row["key"], "key": "missing"}, keys[0]])
        assert [one.value for one in answers] == [*(one["value"] for one in several), None, several[0]["value"]]
        assert [one.partition for one in answers[:-2]] == [one["partition"] for one in several]
        assert {one.batch for one in answers} == {4}
        assert followed.get_many(()) == []
        with pytest.raises(spark_dstl.InvalidKey, match=r"window \(struct<.*, key \(string\)"):
            followed.get("a")
        with pytest.raises(spark_dstl.UnreadableState, match="there is: operator 0"):
            followed.get("a", operator=7)
        with pytest.raises(spark_dstl.ResultTooLarge, match="more than 1 rows"):
            followed.table(max_rows=1)
        assert followed.table(max_rows=10_000).num_rows > 1


@IF_IN_FULL
@pytest.mark.skipif(not installed_line().converts, reason="this Spark cannot write states at a batch of choice")
@pytest.mark.usefixtures("short_looks")
def test_the_copy_starts_anew_after_a_repartition(spark: SparkSession, tmp_path: Path) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", 4)
    clicks.resume(3)
    with (
        spark_dstl.open(str(clicks.checkpoint)) as checkpoint,
        checkpoint.follow(copies=True) as followed,
    ):
        before = followed.table().drop_columns(["partition"])
        checkpoint.repartition(3, apply=True, stopped=True)
        assert list(followed.batches(waits=False)) == []
        assert (followed.position.batch, followed.starts) == (3, 2)
        copied = followed.table()
        assert set(copied.column("partition").to_pylist()) == {0, 1, 2}
        assert rows_of(copied.drop_columns(["partition"])) == rows_of(before)
        clicks.resume()
        assert [one.batch for one in followed.batches(waits=False)] == [4]
        assert rows_of(followed.table()) == rows_of(checkpoint.state(4).read_all())


def test_a_server_answers_until_it_is_terminated(spark: SparkSession, tmp_path: Path) -> None:
    clicks = Clicks.create(spark, tmp_path / "query", 4)
    clicks.resume(2)
    port = free_port()
    limits = ("--max-rows", "1000", "--max-reads", "1", "--idle", "20", "--metrics-port", str(port))
    command = [sys.executable, "-m", "spark_dstl", "serve", str(clicks.checkpoint), *limits]
    with serving(command, DSTL_SERVE_TOKEN="secret") as (facts, client):
        assert facts["batch"] == 1
        token = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer secret")])

        def ask(command: str, **fields: Any) -> pa.Table:
            ticket = flight.Ticket(json.dumps({"command": command, **fields}).encode())
            return client.do_get(ticket, token).read_all()

        for headers in ([], [(b"authorization", b"Bearer wrong")]):
            with pytest.raises(flight.FlightUnauthenticatedError):
                client.do_get(flight.Ticket(b"{}"), flight.FlightCallOptions(headers=headers)).read_all()
        (described,) = ask("describe").to_pylist()
        assert (described["operator"], described["partitions"]) == (0, 2)
        assert "window STRUCT" in described["key"]
        scanned = ask("scan").to_pylist()
        assert len(ask("scan", partition=0)) < len(scanned)
        key = scanned[0]["key"]
        as_text = {"window": {name: time.isoformat() for name, time in key["window"].items()}, "key": key["key"]}
        for form in (as_text, list(as_text.values())):
            (found,) = ask("get", key=form).to_pylist()
            assert (found["value"], found["batch"]) == (scanned[0]["value"], 1)
            assert ask("get", keys=[form, form]).to_pylist() == [found, found]

        changes = client.do_get(flight.Ticket(b'{"command": "changes", "after": 0}'), token)
        first = changes.read_chunk().data
        assert set(first.column("batch").to_pylist()) == {1}
        with pytest.raises(flight.FlightUnavailableError, match="1 reads are open"):
            ask("scan")
        clicks.resume()
        assert set(changes.read_chunk().data.column("batch").to_pylist()) == {2}
        for wrong, why in (
            ({"command": "get", "key": 1}, "Its columns are window"),
            ({"command": "get", "key": as_text, "store": "none"}, "there is: operator 0"),
        ):
            with pytest.raises(pa.ArrowInvalid, match=why):
                ask(**wrong)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        assert {"dstl_serve_open_reads 1", 'dstl_serve_requests_total{command="get",outcome="done"} 4'} <= set(lines)
        assert list((clicks.checkpoint / "dstl/epochs").glob("*.pin"))
    assert not list((clicks.checkpoint / "dstl/epochs").glob("*.pin"))
