"""What a user is told: nothing when a query is stopped, and the right thing first when its log is damaged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import query_driver
from harness import Query, Reader, Run
from scenarios import Aggregation
from settings import dstl, log_confs
from shared_session import contender

# See docs/log-file-format.md.
HEADER_MAGIC = b"DSTLLOG\n"
HEADER_LENGTH = 24
TRAILER_LENGTH = 68

STOPS = ["executor.mid-task", "executor.before-upload", "driver.before-commit-entry"]

# A line of the log, or of a stack trace, that makes somebody look: errors, and whatever names our classes in a trace.
ALARMING = re.compile(r"^[\d:.]+ ERROR |^\s+at .*dstl|\[DSTL_", re.MULTILINE)
# What Spark says itself of tasks that are interrupted while they fetch their input.
OF_SPARK = re.compile(r" ERROR ShuffleBlockFetcherIterator: ")


def test_a_query_that_is_stopped_in_the_middle_of_a_batch_says_nothing_and_goes_on_where_it_was(
    tmp_path: Path, reader: Reader
) -> None:
    confs = {**log_confs(), **dstl(inline__maxSegmentSize="0")}
    run = Run.create(tmp_path, Aggregation.generate(files=4), confs=confs)
    for batch, point in enumerate(STOPS, start=1):
        with run.start_to_stop(f"{point}=pause@{batch}", point) as driver:
            driver.succeed()
            said = [line for line in driver.log().splitlines() if ALARMING.search(line) and not OF_SPARK.search(line)]
            assert not said, driver.failed(f"a query that was stopped at {point} says {said[0]}")
        assert max(run.committed(run.queries[0])) == batch - 1
    with run.start() as driver:
        driver.succeed()
    run.check()
    run.check_state(reader)


@pytest.mark.parametrize("place", ["index", "segment"])
def test_damage_is_what_the_exception_says_first(tmp_path: Path, spark: SparkSession, place: str) -> None:
    """Of an entry that is not the newest one, which tasks read when they load their stores."""
    run = Run.create(tmp_path, Aggregation.generate(files=4), confs={})
    query = run.queries[0]
    last = query.input / "events" / "0003.json"
    last.rename(tmp_path / last.name)
    session = contender(spark, "dstl")
    query_driver.start(session, query.spec()).awaitTermination()
    entry = Path(query.checkpoint) / "commits" / "2"
    damage(entry, place)
    (tmp_path / last.name).rename(last)
    # Executors do not read again what they hold.
    cast(Any, spark.sparkContext._jvm).org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    with pytest.raises(StreamingQueryException) as raised:
        restart(session, query).awaitTermination()
    first = str(raised.value).splitlines()[0]
    assert "DSTL_DAMAGED_LOG" in first, str(raised.value)
    assert re.search(rf"{re.escape(str(entry))} is damaged at offset \d+", first)
    assert "Restore the object from a backup" in first


def damage(entry: Path, place: str) -> None:
    """Change a byte: of the index, which ends where the trailer of fixed size begins, or of the segments before it."""
    content = bytearray(entry.read_bytes())
    at = len(content) - TRAILER_LENGTH - 2 if place == "index" else content.index(HEADER_MAGIC) + HEADER_LENGTH + 5
    content[at] ^= 0xFF
    entry.write_bytes(bytes(content))
    # Hadoop's local file system would find it before we do.
    entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)


def restart(session: SparkSession, query: Query) -> StreamingQuery:
    """The query without Python between the error and whoever waits for the end."""
    return (
        query_driver.aggregation(session, query.input)
        .writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", query.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
