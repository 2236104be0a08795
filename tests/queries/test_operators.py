# SPDX-License-Identifier: Apache-2.0
"""Stateful operators of Python give the same results and states on the log as with Spark's own files, after a restart.

The suites of the Scala code test operators that Python only passes on.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from settings import IN_FULL
from shared_session import Contest, Operator, contender
from spark_facts import HAS_PROCESSORS, HAS_PROCESSORS_OF_ROWS, TAKES_ANY_PROVIDER
from width_operators import OPERATORS

PROCESSORS: list[Operator] = []
if HAS_PROCESSORS:
    import width_processors

    PROCESSORS += width_processors.PROCESSORS

IN_PANDAS = OPERATORS[-1]
# The checkpoint formats alternate, because they concern the commit of a store and not its operator.
CASES = [(IN_PANDAS, "dstl", 2)] + [
    (operator, "stock", 1 + number % 2)
    for number, operator in enumerate([*PROCESSORS, *([IN_PANDAS] if IN_FULL else [])])
]
if TAKES_ANY_PROVIDER:
    CASES += [(operator, "dstl", 1 + number % 2) for number, operator in enumerate(PROCESSORS)]
# Those with pandas have the same state as those with rows; a suite of the Scala code tests times to live and schemas.
ALIKE = [f"transform-with-state-{of}" for of in ("in-pandas-ttl", "in-pandas-another-schema", "ttl", "another-schema")]
CASES = [case for case in CASES if IN_FULL or not HAS_PROCESSORS_OF_ROWS or case[0].name not in ALIKE]


@pytest.mark.parametrize(
    ("operator", "provider", "version"), CASES, ids=[f"{case[0].name}-{case[1]}-v{case[2]}" for case in CASES]
)
def test_an_operator_gives_the_results_of_stock_spark(
    tmp_path: Path, spark: SparkSession, operator: Operator, provider: str, version: int
) -> None:
    theirs = Contest(contender(spark, "spark", version), operator, tmp_path / "spark")
    ours = Contest(contender(spark, provider, version), operator, tmp_path / "dstl")
    with ThreadPoolExecutor() as both:
        list(both.map(Contest.run, (theirs, ours)))
    assert any(theirs.batches.values())
    assert ours.batches == theirs.batches
    assert ours.states() == theirs.states()
    assert list(theirs.checkpoint.rglob("*.changelog"))
    assert not list(ours.checkpoint.rglob("*.changelog"))
    entries = [entry for entry in (ours.checkpoint / "commits").iterdir() if entry.name.isdigit()]
    assert entries
    assert all(entry.read_bytes().endswith(b"DSTLEND\n") for entry in entries)


@pytest.mark.skipif(
    TAKES_ANY_PROVIDER or not HAS_PROCESSORS, reason="this Spark takes any provider class, or has no processors"
)
def test_transform_with_state_fails_with_another_provider_class(tmp_path: Path, spark: SparkSession) -> None:
    contest = Contest(contender(spark, "dstl"), PROCESSORS[0], tmp_path)
    with pytest.raises(StreamingQueryException, match="RocksDBStateStoreProvider"):
        contest.run()
