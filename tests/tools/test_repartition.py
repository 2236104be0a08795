# SPDX-License-Identifier: Apache-2.0
"""A query continues with another number of partitions, with the results of a query that always had the same."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_dstl
from convertible import CONVERTIBLE
from settings import IN_FULL
from shared_session import Moving, Operator, contender
from spark_dstl.checkpoint.repartition.repartition import Repartition
from spark_dstl.release import installed_line

if not installed_line().converts:
    pytest.skip("this Spark cannot write states at a batch of choice", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("short_looks")

TRIED = [one for one in CONVERTIBLE if "without-keys" not in one.name and one.name != "limit"]


def repartitioned(path: Path, partitions: int) -> Repartition:
    with spark_dstl.open(str(path)) as checkpoint:
        return checkpoint.repartition(partitions, apply=True, stopped=True)


def numbers(directory: Path) -> list[int]:
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def settings(checkpoint: Path, batch: int) -> dict[str, str]:
    lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").split("\n")
    found: dict[str, str] = json.loads(lines[1])["conf"]
    return found


@pytest.mark.parametrize(("provider", "version", "partitions"), [("dstl", 1, 5), ("dstl", 2, 1), ("spark", 1, 5), ("spark", 2, 3)])
@pytest.mark.parametrize("operator", TRIED, ids=[operator.name for operator in TRIED])
def test_a_query_continues_with_another_number_of_partitions(
    tmp_path: Path, spark: SparkSession, operator: Operator, provider: str, version: int, partitions: int
) -> None:
    for name in ("same", "other"):
        (tmp_path / name).mkdir()
    same = Moving(contender(spark, "spark"), operator, tmp_path / "same")
    other = Moving(contender(spark, provider, version), operator, tmp_path / "other")
    with ThreadPoolExecutor() as both:
        list(both.map(Moving.begin, (same, other)))
    newest = max(numbers(other.checkpoint / "commits"))
    done = repartitioned(other.checkpoint, partitions)
    assert (done.batch, done.before, done.partitions) == (newest, 2, partitions)
    assert sum(stores.rows or 0 for stores in done.stores) > 0
    with spark_dstl.open(str(other.checkpoint)) as checkpoint:
        found = checkpoint.verify()
    assert (found.is_damaged, found.newest_undamaged) == (False, newest + 1), found.damages
    with ThreadPoolExecutor() as both:
        list(both.map(lambda one: one.finish(one.session), (same, other)))
    assert newest + 1 not in other.batches
    assert [other.batches[batch] for batch in sorted(other.batches)] == [same.batches[batch] for batch in sorted(same.batches)]
    for batch in numbers(other.checkpoint / "offsets"):
        assert settings(other.checkpoint, batch)["spark.sql.shuffle.partitions"] == str(2 if batch <= newest else partitions)
