# SPDX-License-Identifier: Apache-2.0
"""A query continues with another number of partitions, with the results of a query that kept its number."""

from __future__ import annotations

import copy
import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from invoked import succeeded
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from verified import verified

import spark_dstl
from contests import join_in
from convertible import CONVERTIBLE
from copies import copied
from settings import IN_FULL, STATE_STORE
from shared_session import FILES, Moving, Operator, contender, numbers
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.repartition import repartition as module
from spark_dstl.checkpoint.repartition.repartition import Repartition
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.release import installed_line
from width_operators import late
from width_processors import PROCESSORS

if not installed_line().converts:
    pytest.skip("this Spark cannot write states at a batch of choice", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("short_looks")

BY_NAME = {operator.name: operator for operator in (*CONVERTIBLE, *PROCESSORS)}
AGGREGATION = BY_NAME["aggregation"]
# The provider of the state, the format of the checkpoint, and the new number of partitions instead of 2.
TRIED = [(BY_NAME["join-left-outer"], "dstl", 1, 3)]
if IN_FULL:
    IN_ONE_PARTITION = ("aggregation-without-keys-format-1", "limit")
    # Spark 4.2 does not pin the number in offsets of format 2, and RocksDB's providers start no join of format 1.
    NOT_POSSIBLE = ("windows-with-row-checksums-and-offsets-format-2", "join-inner-format-1")
    others = [one for one in CONVERTIBLE if one.name not in (*IN_ONE_PARTITION, *NOT_POSSIBLE)]
    TRIED = [
        (one, *way) for one in others for way in (("dstl", 1, 3), ("dstl", 2, 1), ("spark", 1, 1), ("spark", 2, 5))
    ]
    TRIED += [(one, "stock", version, 3) for one in PROCESSORS for version in (1, 2)]
    TRIED += [(replace(join_in(layout), name=f"join-{layout}"), "dstl", 1, 3) for layout in (3, 4)]


def repartitioned(path: Path, partitions: int) -> Repartition:
    with spark_dstl.open(str(path)) as checkpoint:
        return checkpoint.repartition(partitions, apply=True, stopped=True)


def partitions_of(checkpoint: Path) -> list[str]:
    """The number of partitions of each batch."""
    lines = [(checkpoint / "offsets" / str(one)).read_text(encoding="utf-8") for one in numbers(checkpoint / "offsets")]
    return [json.loads(line.split("\n")[1])["conf"]["spark.sql.shuffle.partitions"] for line in lines]


def counts(checkpoint: Path, batch: int | None = None) -> dict[str, int]:
    """The state of the aggregation after a batch or the newest one, in whatever partitions."""
    with spark_dstl.open(str(checkpoint)) as opened:
        rows = opened.state(batch).read_all().to_pylist()
    return {row["key"]["key"]: row["value"]["count"] for row in rows}


def results(query: Moving) -> list[list[str]]:
    return [query.batches[batch] for batch in sorted(query.batches)]


@pytest.mark.parametrize(
    ("operator", "provider", "version", "partitions"),
    TRIED,
    ids=[f"{one.name}-{provider}-{version}-{partitions}" for one, provider, version, partitions in TRIED],
)
def test_a_query_continues_with_another_number_of_partitions(
    tmp_path: Path, spark: SparkSession, operator: Operator, provider: str, version: int, partitions: int
) -> None:
    for name in ("same", "other"):
        (tmp_path / name).mkdir()
    same = Moving(contender(spark, "spark"), operator, tmp_path / "same")
    other = Moving(contender(spark, provider, version), operator, tmp_path / "other")
    with ThreadPoolExecutor() as both:
        list(both.map(Moving.begin, (same, other)))
    last = other.newest
    done = repartitioned(other.checkpoint, partitions)
    assert (done.batch, done.before, done.partitions) == (last, 2, partitions)
    assert sum(stores.rows or 0 for stores in done.stores) > 0
    found = verified(other.checkpoint)
    assert (found.is_damaged, found.newest_undamaged) == (False, last + 1), found.damages
    with ThreadPoolExecutor() as both:
        list(both.map(lambda one: one.finish(one.session), (same, other)))
    assert last + 1 not in other.batches
    assert results(other) == results(same)
    assert partitions_of(other.checkpoint) == ["2"] * (last + 1) + [str(partitions)] * (other.newest - last)
    found = verified(other.checkpoint, deep=True)
    assert (found.is_damaged, found.lost) == (False, {}), found.damages


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Moving:
    """A query in the log that has stopped."""
    query = Moving(contender(spark, "dstl"), AGGREGATION, tmp_path_factory.mktemp("begun"))
    query.begin()
    return query


@pytest.fixture(scope="module")
def expected(begun: Moving, spark: SparkSession) -> list[list[str]]:
    """The results of the query with its first number."""
    same = on_a_copy(begun, "same")
    same.finish(contender(spark, "dstl"))
    return results(same)


def on_a_copy(begun: Moving, directory: str) -> Moving:
    query = copy.copy(begun)
    query.directory, query.batches = directory, dict(begun.batches)
    copied(begun.checkpoint, query.checkpoint)
    return query


class Interrupt(Exception):
    pass


def interrupted_before(monkeypatch: pytest.MonkeyPatch, checkpoint: Path, name: str, partitions: int) -> None:
    """Interrupt a repartition before it writes an object, which is not the lock of the same name."""
    put = Storage.replace

    def interrupt(storage: Storage, to: str, content: bytes) -> None:
        if to == name and not content.startswith(b"dstl"):
            raise Interrupt
        put(storage, to, content)

    def decide(*_: object) -> None:
        raise Interrupt

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "replace", interrupt)
        if name.startswith("commits/"):
            patched.setattr(module, "_decide", decide)
        with pytest.raises(Interrupt):
            repartitioned(checkpoint, partitions)


def test_an_interruption_before_the_commit_entry_leaves_the_old_checkpoint(
    begun: Moving, expected: list[list[str]], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = begun.newest
    old = on_a_copy(begun, "old")
    # All stores are written, one of another number of partitions twice.
    interrupted_before(monkeypatch, old.checkpoint, f"commits/{last + 1}", 3)
    interrupted_before(monkeypatch, old.checkpoint, f"commits/{last + 1}", 1)
    assert (old.checkpoint / f"state/0/0/{last + 2}.zip").exists()
    old.finish(contender(spark, "dstl"))
    assert (results(old), set(partitions_of(old.checkpoint))) == (expected, {"2"})
    assert not verified(old.checkpoint, deep=True).is_damaged
    batches = [batch for batch in numbers(old.checkpoint / "commits") if batch >= last]
    states = {batch: counts(old.checkpoint, batch) for batch in batches}
    # Nor are the stores that no entry has made visible read once the entry of a later repartition has more visible.
    assert repartitioned(old.checkpoint, 3).stores[0].rows == len(states[batches[-1]])
    assert {batch: counts(old.checkpoint, batch) for batch in batches} == states
    assert counts(old.checkpoint, batches[-1] + 1) == states[batches[-1]]


def test_after_an_interruption_a_start_of_the_query_finishes(
    begun: Moving, expected: list[list[str]], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = begun.newest
    new = on_a_copy(begun, "new")
    interrupted_before(monkeypatch, new.checkpoint, f"offsets/{last + 1}", 5)
    assert new.newest == last + 1
    new.finish(contender(spark, "dstl"))
    assert (results(new), partitions_of(new.checkpoint)[last:]) == (expected, ["2", "5", "5"])
    found = verified(new.checkpoint, deep=True)
    assert (found.is_damaged, found.lost) == (False, {}), found.damages


def test_a_rollback_goes_back_over_a_repartition(begun: Moving, expected: list[list[str]], spark: SparkSession) -> None:
    last = begun.newest
    back = on_a_copy(begun, "back")
    repartitioned(back.checkpoint, 1)
    succeeded("rollback", back.checkpoint, "--to", last, "--apply", "--stopped")
    assert not list(back.checkpoint.glob("state/*/*/*.zip"))
    back.finish(contender(spark, "dstl"))
    assert (results(back), set(partitions_of(back.checkpoint))) == (expected, {"2"})


def test_a_repeated_command_finishes_an_interrupted_one(
    begun: Moving, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = begun.newest
    query = on_a_copy(begun, "repeated")
    interrupted_before(monkeypatch, query.checkpoint, f"offsets/{last + 1}", 3)
    assert repartitioned(query.checkpoint, 3).is_applied
    with spark_dstl.open(str(query.checkpoint)) as checkpoint:
        assert not checkpoint.verify().is_damaged
        state = checkpoint.state().read_all()
        before = checkpoint.state(last).read_all()
        with pytest.raises(spark_dstl.UnreadableState, match=f"batch {last + 1} .* has no changes"):
            checkpoint.changes(last + 1)
        with pytest.raises(spark_dstl.UnreadableState, match="different numbers of partitions"):
            checkpoint.diff(last, last + 1)
    assert sorted(map(str, state.column("key").to_pylist())) == sorted(map(str, before.column("key").to_pylist()))
    assert set(state.column("partition").to_pylist()) == {0, 1, 2}
    # The newest batch is not in the log now.
    interrupted_before(monkeypatch, query.checkpoint, f"commits/{last + 2}", 1)
    with pytest.raises(StreamingQueryException, match="dstl repartition changes the partitions"):
        query.finish(contender(spark, "dstl"))


def joined_and_counted(events: DataFrame) -> DataFrame:
    """Counts of what a join by the key returns, by the key and more."""
    left = late(events).select("at", "key", "value")
    right = late(events.where("value % 2 = 0")).selectExpr("at AS since", "key AS other")
    near = sf.expr("key = other AND since BETWEEN at - INTERVAL 5 HOURS AND at")
    return left.join(right, near).groupBy("key", sf.window("at", "30 hours"), sf.expr("value % 3")).count()


def test_state_that_is_not_distributed_by_its_keys_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    """Queries of Spark 3.2 and older keep the rows of an operator where the operator before it has put them."""
    loose = {"spark.sql.streaming.statefulOperator.useStrictDistribution": "false"}
    query = Moving(contender(spark, "dstl"), Operator("loose", joined_and_counted, confs=loose), tmp_path)
    query.begin()
    last = query.newest
    with pytest.raises(spark_dstl.UnreadableState, match=r"a row of partition \d .* belongs to partition \d"):
        repartitioned(query.checkpoint, 3)
    query.finish(query.session)
    assert set(partitions_of(query.checkpoint)) == {"2"}
    assert query.newest > last


def test_a_file_sink_continues_over_a_repartition(tmp_path: Path, spark: SparkSession) -> None:
    """Its log compacts the entries of all batches, and the repartition has written none."""
    session = contender(spark, "dstl")
    session.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "3")
    query = Moving(session, AGGREGATION, tmp_path)
    counted = 0

    def run(files: int) -> None:
        nonlocal counted
        query._add(counted, counted + files)
        counted += files
        events = session.readStream.schema("time LONG, key STRING, value LONG").option("maxFilesPerTrigger", 1)
        keys = events.json(str(tmp_path / "events")).dropDuplicates().select("key", "value")
        sink = keys.writeStream.format("parquet").option("checkpointLocation", str(query.checkpoint))
        sink.trigger(availableNow=True).start(str(tmp_path / "output")).awaitTermination()

    run(2)
    # Batch 2, whose entry in the log of the sink is a compacted one, and batch 3.
    for partitions in (1, 3):
        repartitioned(query.checkpoint, partitions)
    run(2)
    assert query.newest == 5
    assert (tmp_path / "output/_spark_metadata/5.compact").exists()
    found = session.read.parquet(str(tmp_path / "output"))
    expected = session.read.json(str(tmp_path / "events")).distinct()
    assert found.count() == expected.count() > 0


@pytest.mark.skipif(not IN_FULL, reason="export after a repartition: only in the whole suite")
def test_stock_spark_continues_from_an_export_of_a_repartition(
    begun: Moving, expected: list[list[str]], spark: SparkSession
) -> None:
    query = on_a_copy(begun, "logged")
    repartitioned(query.checkpoint, 3)
    logged, query.directory = query.checkpoint, "exported"
    with spark_dstl.open(str(logged)) as checkpoint:
        checkpoint.export(str(query.checkpoint), stopped=True)
    assert not (query.checkpoint / "dstl").exists()
    query.finish(contender(spark, "spark"))
    assert (results(query), partitions_of(query.checkpoint)[-1]) == (expected, "3")


@pytest.mark.skipif(not IN_FULL, reason="the lock of checkpoints outside of the log: only in the whole suite")
def test_a_locked_checkpoint_of_stock_spark_starts_after_the_command_or_a_rollback(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Moving(contender(spark, "spark"), AGGREGATION, tmp_path)
    query.begin()
    last = query.newest
    other = on_a_copy(query, "other")
    for name in (f"commits/{last + 1}", f"offsets/{last + 1}"):
        interrupted_before(monkeypatch, other.checkpoint, name, 3)
        with pytest.raises(StreamingQueryException, match="dstl repartition changes the partitions"):
            on_a_copy(other, f"locked-{name[:3]}").finish(contender(spark, "spark"))
        succeeded("rollback", other.checkpoint, "--to", last, "--apply", "--stopped")
        assert other.newest == max(numbers(other.checkpoint / "offsets")) == last
        assert not list(other.checkpoint.glob(f"state/*/*/{last + 2}.zip"))


# Few batches are retained, all changelogs are in data files, and each version gets a snapshot.
SHORT = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    f"{STATE_STORE}.minDeltasForSnapshot": "1",
    f"{STATE_STORE}.dstl.batch.persistDelay": "100ms",
    f"{STATE_STORE}.dstl.inline.maxSegmentSize": "0",
    f"{STATE_STORE}.dstl.materialize.replayCost": "100000",
}


class Long(Moving):
    """A query that has more files than the others: their rows come again."""

    files = 0

    def run_until(self, is_over: Callable[[], bool]) -> None:
        """Run a batch for each further file, at least ten."""
        query = self._start(self.operator.query, processingTime="0 seconds")
        deadline, last = time.monotonic() + 90, self.files + 10
        try:
            while self.files < last or not is_over():
                assert time.monotonic() < deadline, numbers(self.checkpoint / "commits")
                name = f"{self.files:04d}.json"
                shutil.copy(self.work / "all" / "events" / f"{self.files % FILES:04d}.json", self.work / name)
                (self.work / name).rename(self.work / "events" / name)
                self.files += 1
                query.processAllAvailable()
        finally:
            query.stop()


def are_deleted(checkpoint: Path, batch: int, first: set[int], partitions: int) -> bool:
    """Whether nothing is left of a batch and earlier ones, but the first entry of each run, which fences it."""
    entries = {one for one in numbers(checkpoint / "commits") if one <= batch} - first
    zips = [path for path in checkpoint.glob("state/0/*/*.zip") if int(path.stem) <= batch + 1]
    # Those of partitions that are not used any more stay.
    return not entries and not [path for path in zips if int(path.parent.name) < partitions]


@pytest.mark.skipif(not IN_FULL, reason="retention after a repartition: only in the whole suite")
@pytest.mark.timeout(400)
def test_the_objects_of_the_old_number_are_deleted_in_time(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The query was just stopped: its run ends within five seconds, and each upload may still end.
    monkeypatch.setattr(activity, "LOOK_SECONDS", 2.0)
    session = contender(spark, "dstl")
    for key, value in SHORT.items():
        session.conf.set(key, value)
    query = Long(session, AGGREGATION, tmp_path)
    query.run_until(lambda: True)
    fences = {0}
    for partitions in (3, 1):
        repartitioned(query.checkpoint, partitions)
        moved = query.newest
        fences.add(moved + 1)
        query.run_until(partial(are_deleted, query.checkpoint, moved, fences, partitions))
        # An upload that ended with the query may be left.
        succeeded("gc", query.checkpoint, "--apply", "--stopped")
        found = verified(query.checkpoint, deep=True)
        assert (found.is_damaged, found.lost) == (False, {}), found.damages
        rows = spark.read.schema("time LONG, key STRING, value LONG").json(str(query.work / "events"))
        counted = {row["key"]: row["count"] for row in rows.groupBy("key").count().collect()}
        assert counts(query.checkpoint) == counted
