# SPDX-License-Identifier: Apache-2.0
"""A stopped query logs no error, and the error of a damaged log names the damage first."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import query_driver
from harness import Reader, Run, damage
from scenarios import Aggregation
from settings import dstl, log_confs
from shared_session import contender

STOPS = {"executor.mid-task": 1, "executor.before-upload": 2, "driver.before-commit-entry": 3}

# A line of the log with an error, or of a stack trace with a class of this project.
ALARMING = re.compile(r"^[\d:.]+ ERROR |^\s+at .*dstl|\[DSTL_", re.MULTILINE)
# Spark logs an error for a task that is interrupted while it fetches its input.
OF_SPARK = re.compile(r" ERROR ShuffleBlockFetcherIterator: ")


def test_a_query_stopped_within_a_batch_logs_no_error_and_continues(tmp_path: Path, reader: Reader) -> None:
    confs = {**log_confs(), **dstl(inline__maxSegmentSize="0")}
    run = Run.create(tmp_path, Aggregation.generate(files=4), confs=confs)
    with run.start_to_stop(STOPS) as driver:
        for point, batch in STOPS.items():
            driver.wait_for_pause(point)
            driver.wait_for_log(f"stopped at {point}")
            assert max(run.committed(run.queries[0])) == batch - 1
            run.resume(point)
        driver.succeed()
        logged = [line for line in driver.log().splitlines() if ALARMING.search(line) and not OF_SPARK.search(line)]
        assert not logged, driver.failed(f"a stopped query logs {logged[0]}")
    run.finish(reader)


@pytest.mark.parametrize("place", ["index", "segment"])
def test_the_first_line_of_the_error_names_the_damage(tmp_path: Path, spark: SparkSession, place: str) -> None:
    """The damaged entry is not the newest one; tasks read it when they load their stores."""
    run = Run.create(tmp_path, Aggregation.generate(files=4), confs={})
    query = run.queries[0]
    session = contender(spark, "dstl")
    with query.without_last():
        query_driver.start(session, query.spec()).awaitTermination()
    entry = Path(query.checkpoint) / "commits" / "2"
    damage(entry, place)
    # Loaded stores would not be read from storage again.
    cast(Any, spark.sparkContext._jvm).org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    with pytest.raises(StreamingQueryException) as raised:
        # A Python sink would hide the error of the JVM.
        query_driver.start(session, query.spec(), to_nothing=True).awaitTermination()
    first = str(raised.value).splitlines()[0]
    assert "DSTL_DAMAGED_LOG" in first, str(raised.value)
    assert re.search(rf"{re.escape(str(entry))} is damaged at offset \d+", first)
    assert "Restore the object from a backup" in first
