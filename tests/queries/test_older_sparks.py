# SPDX-License-Identifier: Apache-2.0
"""A command on a Spark without a needed feature fails and names the Spark versions that have it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import spark_dstl
from contests import played
from spark_dstl import CannotConvert, UnreadableState, UnsupportedSpark
from spark_dstl.release import installed_line
from spark_facts import READABLE_FORMATS
from width_operators import OPERATORS


@pytest.mark.skipif(bool(READABLE_FORMATS), reason="this Spark has readers of state")
def test_reading_state_fails_on_a_spark_without_state_readers(tmp_path: Path, spark: SparkSession) -> None:
    contest = played(spark, OPERATORS[0], tmp_path)
    with (
        spark_dstl.open(str(contest.checkpoint)) as checkpoint,
        pytest.raises(UnsupportedSpark, match=r"has no readers of state.* install one of 4\.0, 4\.1, 4\.2, 4\.3"),
    ):
        checkpoint.state()


@pytest.mark.skipif(READABLE_FORMATS != (1,), reason="this Spark has none, or they know format 2")
@pytest.mark.parametrize("provider", ["spark", "dstl"])
def test_reading_state_fails_for_a_checkpoint_format_unknown_to_spark(
    tmp_path: Path, spark: SparkSession, provider: str
) -> None:
    contest = played(spark, OPERATORS[0], tmp_path, provider, 2)
    # Spark's own reader looks for the file without an id in its name.
    named = r"/state/0/[01]/\d+\.changelog does not exist" if provider == "spark" else "Spark 4.0 reads format 1 only"
    with pytest.raises(Py4JJavaError, match=named):
        contest.state()
    with spark_dstl.open(str(contest.checkpoint)) as checkpoint:
        with refused_as_unknown():
            checkpoint.state().read_all()
        with refused_as_unknown():
            checkpoint.changes(1).read_all()
        with refused_as_unknown():
            checkpoint.diff(0, 1).read_all()


def refused_as_unknown() -> AbstractContextManager[object]:
    return pytest.raises(UnreadableState, match=r"has checkpoint format 2; Spark 4\.1 and later can")


@pytest.mark.skipif(installed_line().converts, reason="this Spark can write states at a batch of choice")
def test_a_conversion_fails_on_a_spark_that_cannot_write_states(tmp_path: Path, spark: SparkSession) -> None:
    contest = played(spark, OPERATORS[0], tmp_path, "default")
    with (
        spark_dstl.open(str(contest.checkpoint)) as checkpoint,
        pytest.raises(CannotConvert, match=r"do this where a newer one is installed \(4\.2, 4\.3\)"),
    ):
        checkpoint.convert(str(tmp_path / "converted"), stopped=True)
    assert not (tmp_path / "converted").exists()
