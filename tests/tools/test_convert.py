# SPDX-License-Identifier: Apache-2.0
"""A query continues from a converted checkpoint on the log as on Spark's default provider."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from invoked import succeeded
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from verified import verified

import spark_dstl
from convertible import CONVERTIBLE, JOIN_FORMAT, duplicates
from settings import IN_FULL, PROVIDER
from shared_session import FILES, Moving, Operator, contender, numbers
from spark_dstl import CannotConvert, JvmFailed, UnreadableState
from spark_dstl.checkpoint.convert import stores
from spark_dstl.checkpoint.convert.conversion import Conversion
from spark_dstl.release import installed_line

if not installed_line().converts:
    pytest.skip("this Spark cannot write states at a batch of choice", allow_module_level=True)

AGGREGATION = CONVERTIBLE[0]
# Each of these operators has the same kind of stores as another one.
ALIKE = (
    "aggregation",
    "aggregation-format-1-with-windows",
    "duplicates",
    "duplicates-by-time",
    "duplicates-within-watermark",
    "join-inner",
    "join-left-outer",
    "join-right-outer",
    "join-full-outer",
    "join-left-semi",
    "flat-map-groups-format-1",
    "map-groups-format-2",
    "apply-in-pandas",
)
TRIED = [operator for operator in CONVERTIBLE if IN_FULL or operator.name not in ALIKE]


pytestmark = pytest.mark.usefixtures("short_looks")


def converted(source: Path, target: Path) -> Conversion:
    with spark_dstl.open(str(source)) as checkpoint:
        return checkpoint.convert(str(target), stopped=True)


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@contextmanager
def as_old_spark(spark: SparkSession, is_wanted: bool) -> Iterator[None]:
    """Make Spark begin a query in an old format, as in its own tests."""
    jvm = spark._jvm
    assert jvm is not None
    system = jvm.java.lang.System
    if is_wanted:
        system.setProperty("spark.testing", "true")
    yield
    if is_wanted:
        system.clearProperty("spark.testing")


@pytest.mark.parametrize("operator", TRIED, ids=[operator.name for operator in TRIED])
def test_a_converted_query_gives_the_results_of_an_unconverted_one(
    tmp_path: Path, spark: SparkSession, operator: Operator
) -> None:
    for name in ("spark", "dstl"):
        (tmp_path / name).mkdir()
    theirs = Moving(contender(spark, "default"), operator, tmp_path / "spark")
    ours = Moving(contender(spark, "default"), operator, tmp_path / "dstl")
    with ThreadPoolExecutor() as both, as_old_spark(spark, JOIN_FORMAT in operator.confs):
        list(both.map(Moving.begin, (theirs, ours)))
    source = ours.checkpoint
    before = files(source)
    ours.directory = "converted"
    with ThreadPoolExecutor() as both:
        staying = both.submit(theirs.finish, contender(spark, "default"))
        done = converted(source, ours.checkpoint)
        staying.result()
    assert files(source) == before
    assert (done.batch, done.begun, done.kept) == (max(numbers(source / "commits")), None, 0)
    assert sum(one.rows or 0 for one in done.stores) > 0
    found = verified(ours.checkpoint)
    assert (found.is_damaged, found.newest_undamaged) == (False, done.batch), found.damages
    ours.finish(contender(spark, "dstl"))
    assert ours.batches == theirs.batches
    assert ours.states() == theirs.states()
    later = [batch for batch in numbers(ours.checkpoint / "commits") if batch > done.batch]
    assert later
    for batch in later:
        assert (ours.checkpoint / "commits" / str(batch)).read_bytes().endswith(b"DSTLEND\n")
        assert PROVIDER in (ours.checkpoint / "offsets" / str(batch)).read_text()
    assert not list(ours.checkpoint.rglob("*.delta"))
    assert (ours.checkpoint / "metadata").read_bytes() == (source / "metadata").read_bytes()


@dataclass
class Failing(Moving):
    """A query whose sink fails in one batch, after it has taken the rows."""

    fails_at: int | None = None

    def _take(self, rows: DataFrame, batch: int) -> None:
        taken = sorted(json.dumps([row[0], row[1]]) for row in rows.collect())
        assert self.batches.setdefault(batch, taken) == taken, f"batch {batch} gave other rows when it ran again"
        if batch == self.fails_at:
            raise RuntimeError("the sink fails after it has taken the rows")


def test_an_interrupted_batch_runs_again_with_the_same_input_after_a_conversion(
    tmp_path: Path, spark: SparkSession
) -> None:
    ours = Failing(contender(spark, "default"), AGGREGATION, tmp_path, fails_at=2)
    with pytest.raises(StreamingQueryException, match="the sink fails"):
        ours.begin()
    source = ours.checkpoint
    with pytest.raises(CannotConvert, match=r"all tasks of batch 2 of .* were done, and it is not committed"):
        converted(source, tmp_path / "converted")
    # Remove the result of one task.
    for name in ("3.delta", ".3.delta.crc"):
        (source / "state/0/1" / name).unlink()
    ours.directory, ours.fails_at = "converted", None
    done = converted(source, ours.checkpoint)
    assert (done.batch, done.begun) == (1, 2)
    assert numbers(ours.checkpoint / "offsets") == [1, 2]
    assert numbers(ours.checkpoint / "commits") == [1]
    ours.finish(contender(spark, "dstl"))
    assert set(ours.batches) == set(range(FILES))
    assert last_counts(ours) == counted(tmp_path / "events")


def last_counts(query: Moving) -> Counter[str]:
    """The newest count of each key in the sink."""
    return Counter(dict(json.loads(row) for batch in sorted(query.batches) for row in query.batches[batch]))


def counted(events: Path) -> Counter[str]:
    """The count of each key in the input."""
    return Counter(row["key"] for row in rows_of(events))


def rows_of(events: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(events.glob("*.json")):
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def to_files(session: SparkSession, work: Path, checkpoint: Path) -> None:
    events = session.readStream.schema("time LONG, key STRING, value LONG").option("maxFilesPerTrigger", 1)
    rows = duplicates(events.json(str(work / "events")))
    sink = rows.writeStream.format("json").option("path", str(work / "sink"))
    sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()


def test_a_file_sink_has_each_row_once_after_a_conversion_from_an_uncommitted_batch(
    tmp_path: Path, spark: SparkSession
) -> None:
    contest = Moving(contender(spark, "default"), AGGREGATION, tmp_path)
    contest._add(0, Moving.BEFORE)
    source, target = tmp_path / "source", tmp_path / "target"
    to_files(contest.session, tmp_path, source)
    for name in ("2", ".2.crc"):
        (source / "commits" / name).unlink()
    with pytest.raises(CannotConvert, match="its sink may have its output"):
        converted(source, target)
    to_files(contest.session, tmp_path, source)
    assert converted(source, target).batch == 2
    contest._add(Moving.BEFORE, FILES)
    to_files(contender(spark, "dstl"), tmp_path, target)
    written = sorted((row.key, row.rest) for row in contest.session.read.json(str(tmp_path / "sink")).collect())
    assert written == sorted({(row["key"], row["value"] % 5) for row in rows_of(tmp_path / "events")})
    assert numbers(target / "commits") == [2, 3]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """A checkpoint of the default provider."""
    contest = Moving(contender(spark, "default"), AGGREGATION, tmp_path_factory.mktemp("plain"))
    contest.begin()
    return contest.checkpoint


def test_a_killed_conversion_continues_and_leaves_no_usable_checkpoint_before(
    tmp_path: Path, plain: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first of the two stores is done, the second is under way.
    monkeypatch.setattr(stores, "_AT_ONCE", 1)
    target = tmp_path / "target"
    killed: list[int] = []

    def kill(what: str, done: int, _of: int) -> None:
        if what == "Converting stores" and done == 1:
            os.kill(checkpoint.gateway().pid, signal.SIGKILL)
            killed.append(done)

    with spark_dstl.open(str(plain), progress=kill) as checkpoint, pytest.raises(JvmFailed):
        checkpoint.convert(str(target), stopped=True)
    assert killed
    assert not (target / "metadata").exists()
    assert not (target / "offsets").exists()
    hasty = Moving(contender(spark, "default"), AGGREGATION, tmp_path, directory="hasty")
    shutil.copytree(target, hasty.checkpoint)
    with pytest.raises(StreamingQueryException, match="LOCATION_NOT_EMPTY"):
        hasty.begin()
    with pytest.raises(CannotConvert, match="a query has continued it"):
        converted(plain, hasty.checkpoint)
    shutil.rmtree(target / "state/0/1", ignore_errors=True)
    (target / "state/0/1/SSTs").mkdir(parents=True)
    (target / "state/0/1/SSTs/000008-left-over.sst").write_bytes(b"begun")
    done = converted(plain, target)
    assert (done.written, done.kept) == (1, 1)
    assert not list(target.rglob("*left-over*"))
    assert (target / "metadata").read_bytes() == (plain / "metadata").read_bytes()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, plain: Path) -> Path:
    """The conversion of `plain`."""
    target = tmp_path_factory.mktemp("done") / "target"
    converted(plain, target)
    return target


def test_a_repeated_conversion_rewrites_only_damaged_stores(tmp_path: Path, plain: Path, done: Path) -> None:
    target = Path(shutil.copytree(done, tmp_path / "target"))
    sst = next(target.glob("state/0/1/SSTs/*.sst"))
    sst.write_bytes(bytes(sst.stat().st_size))
    (target / "offsets/2").write_text("too short")
    second, third = converted(plain, target), converted(plain, target)
    assert (second.written, second.kept) == (1, 1)
    assert (third.written, third.kept) == (0, 2)
    assert (target / "offsets/2").read_bytes() == (done / "offsets/2").read_bytes()


def test_a_repeated_conversion_rewrites_a_store_with_other_rows(tmp_path: Path, plain: Path, done: Path) -> None:
    target = Path(shutil.copytree(done, tmp_path / "target"))
    # Both partitions are intact, and one is a copy of the other.
    shutil.rmtree(target / "state/0/1")
    shutil.copytree(done / "state/0/0", target / "state/0/1", ignore=shutil.ignore_patterns("_metadata"))
    assert converted(plain, target).written == 1


def test_a_conversion_of_a_damaged_checkpoint_names_the_store(tmp_path: Path, plain: Path) -> None:
    def broken(name: str) -> Path:
        return Path(shutil.copytree(plain, tmp_path / name))

    delta = broken("delta") / "state/0/1/2.delta"
    delta.write_bytes(delta.read_bytes()[: delta.stat().st_size // 2])
    (delta.parent / ".2.delta.crc").unlink()
    with pytest.raises(UnreadableState, match=r"state/0/1 of .*could not be converted.*Stream ended"):
        converted(tmp_path / "delta", tmp_path / "target")
    (broken("lacking") / "state/0/1/3.delta").unlink()
    with pytest.raises(UnreadableState, match=r"state/0/1 of .*3\.delta"):
        converted(tmp_path / "lacking", tmp_path / "target-of-lacking")
    for name in ("target", "target-of-lacking"):
        assert not (tmp_path / name / "metadata").exists()


def test_the_convert_command_prints_its_plan_and_its_result(tmp_path: Path, plain: Path, done: Path) -> None:
    def convert(target: Path, *options: str) -> str:
        result = succeeded("convert", plain, target, "--stopped", *options)
        return result.output

    text = convert(tmp_path / "target", "--dry-run")
    assert text.splitlines()[0] == "operator 0 (stateStoreSave): 2 partitions"
    assert "Nothing is written yet" in text
    found = json.loads(convert(tmp_path / "target", "--dry-run", "--output", "json"))
    assert (found["batch"], found["begun"], found["written"]) == (2, None, 0)
    assert not (tmp_path / "target").exists()
    text = convert(Path(shutil.copytree(done, tmp_path / "target")))
    assert text.splitlines()[0] == "operator 0 (stateStoreSave): 2 partitions, 12 rows"
    assert "0 stores written; 2 were there already." in text
