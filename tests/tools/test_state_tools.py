# SPDX-License-Identifier: Apache-2.0
"""`Checkpoint.state`, `changes` and `diff` return what Spark's state reader returns, without a Spark application."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

import spark_dstl
from contests import join_in, played
from copies import copied
from settings import IN_FULL
from shared_session import Contest, Operator
from spark_dstl import Selection
from spark_facts import JOIN_LAYOUTS, READABLE_FORMATS, skip_unless_readable
from width_operators import OPERATORS

if not READABLE_FORMATS:
    pytest.skip("this Spark has no readers of state", allow_module_level=True)
from width_processors import GROWING, LEDGER

IF_IN_FULL = pytest.mark.skipif(not IN_FULL, reason="like another, with the other of two independent formats")
Rows = list[dict[str, Any]]
SIDES = ("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")


def every_type(events: DataFrame) -> DataFrame:
    """Keys and values of each type that a group's key and an aggregate may have."""
    keys = {
        "text": "key",
        "bytes": "CAST(key AS BINARY)",
        "small": "CAST(value % 100 AS BYTE)",
        "exact": "CAST(value AS DECIMAL(30, 4)) / 3",
        "real": "CAST(value AS DOUBLE) / 7",
        "day": "CAST(at AS DATE)",
        "local": "CAST(at AS TIMESTAMP_NTZ)",
        "span": "make_dt_interval(1, 2, 3, value)",
        "months": "make_ym_interval(1, CAST(value % 12 AS INT))",
        "nothing": "IF(value % 2 = 0, NULL, value)",
        "nested": "named_struct('a', key, 'b', array(value, NULL), 'c', array(make_ym_interval(2, 3), NULL))",
    }
    typed = events.select(*(sf.expr(text).alias(name) for name, text in keys.items()), "at", "value")
    # A group's key cannot be a map, nor hold one.
    exact = "'exact', CAST(value AS DECIMAL(38, 18))"
    entry = f"named_struct({exact}, 'bytes', CAST(text AS BINARY), 'local', CAST(at AS TIMESTAMP_NTZ))"
    tags = f"map(text, map(value, {entry}), 'span', map(value, NULL))"
    spans = "map(make_dt_interval(1, 2, 3, value), array(CAST(at AS DATE), NULL))"
    sums = (
        sf.count("*").alias("n"),
        sf.max("at").alias("last"),
        sf.avg("value").alias("mean"),
        sf.max_by(sf.expr(tags), "value").alias("tags"),
        sf.max_by(sf.expr(spans), "value").alias("spans"),
    )
    counted = typed.groupBy(*keys).agg(*sums)
    # Python has no intervals of years, and the sink collects rows.
    return counted.drop("months", "tags", "spans").withColumn("nested", sf.col("nested").dropFields("c"))


TYPES = Operator("every-type", every_type, "update")


def spark_rows(contest: Contest, **options: Any) -> Rows:
    """The rows of Spark's state reader, converted to Arrow types."""
    table = contest.session.read.format("statestore").options(**options).load(str(contest.checkpoint))
    for field in table.schema.fields:
        if isinstance(field.dataType, StructType):
            column = sf.col(field.name)
            # Arrow holds an interval of years as months.
            if "months" in field.dataType.names:
                column = column.withField("months", months(column["months"]))
            if "nested" in field.dataType.names:
                column = column.withField("nested.c", sf.transform(column["nested"]["c"], months))
            table = table.withColumn(field.name, column)
            named = table.schema[field.name].dataType
            assert isinstance(named, StructType)
            table = table.withColumn(field.name, sf.col(field.name).cast(unambiguous(named)))
    return canonical(table.toArrow().to_pylist())


def months(interval: Column) -> Column:
    return (sf.extract(sf.lit("YEAR"), interval) * 12 + sf.extract(sf.lit("MONTH"), interval)).cast("int")


def unambiguous(struct: StructType) -> StructType:
    """The struct with numbers behind names that it has twice, as Arrow for Python wants it."""
    seen: dict[str, int] = {}
    fields = []
    for field in struct.fields:
        number = seen.get(field.name, 0)
        seen[field.name] = number + 1
        twice = struct.names.count(field.name) > 1
        fields.append(StructField(f"{field.name}_{number}" if twice else field.name, field.dataType, field.nullable))
    return StructType(fields)


def canonical(rows: Rows) -> Rows:
    """The rows in one order, without columns that only one of the two readers has."""
    out = ("operator", "store", "column_family", "batch_id")
    renamed = ({("partition" if name == "partition_id" else name): row[name] for name in row} for row in rows)
    return sorted(({name: row[name] for name in row if name not in out} for row in renamed), key=repr_sorted)


def repr_sorted(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))


def read(reader: Any) -> Rows:
    return canonical(reader.read_all().to_pylist())


def objects(root: Path) -> dict[str, tuple[int, int]]:
    """All files and directories of a checkpoint, with size and time. Pins come and go: without that of theirs."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_size if path.is_file() else 0,
            0 if path.name == "epochs" else path.stat().st_mtime_ns,
        )
        for path in [root, *root.rglob("*")]
    }


def copy_of(contest: Contest) -> Path:
    """A copy of the checkpoint, which the maintenance of the session's stores does not change."""
    return copied(contest.checkpoint, contest.checkpoint.with_name("copy"))


@pytest.mark.parametrize(
    ("operator", "provider", "version"),
    [(TYPES, "dstl", 1), (TYPES, "spark", 2), (OPERATORS[0], "dstl", 2)],
    ids=["every-type", "every-type-in-stock-spark's-files", "aggregation-with-ids"],
)
def test_state_and_changes_match_spark_s_state_reader(
    tmp_path: Path, spark: SparkSession, operator: Operator, provider: str, version: int
) -> None:
    skip_unless_readable(version)
    contest = played(spark, operator, tmp_path, provider, version)
    root = copy_of(contest)
    before = objects(root)
    last = contest.newest
    with spark_dstl.open(str(root)) as checkpoint:
        state = read(checkpoint.state())
        earlier = read(checkpoint.state(last - 1))
        changes = read(checkpoint.changes(1))
        differences = checkpoint.diff(last - 1, last).read_all().to_pylist()
    assert objects(root) == before
    assert state
    assert state == spark_rows(contest)
    assert earlier == spark_rows(contest, batchId=last - 1)
    assert changes == spark_rows(contest, readChangeFeed=True, changeStartBatchId=1, changeEndBatchId=1)
    assert applied(earlier, differences) == state


def applied(state: Rows, differences: Rows) -> Rows:
    """A state after its differences are applied."""
    rows = {repr((row["partition"], row["key"])): row for row in state}
    for row in differences:
        place = repr((row["partition"], row["key"]))
        assert (row["change"] == "added") == (place not in rows)
        assert row["before"] == (rows[place]["value"] if place in rows else None)
        if row["change"] == "removed":
            del rows[place]
        else:
            rows[place] = {"partition": row["partition"], "key": row["key"], "value": row["after"]}
    return canonical(list(rows.values()))


@pytest.mark.parametrize("version", [pytest.param(1, marks=IF_IN_FULL), 2])
def test_stores_of_a_join_are_read_by_name(tmp_path: Path, spark: SparkSession, version: int) -> None:
    skip_unless_readable(version)
    contest = played(spark, OPERATORS[1], tmp_path, version=version)
    root = copy_of(contest)
    with spark_dstl.open(str(root)) as checkpoint:
        for store in SIDES:
            rows = read(checkpoint.state(selection=Selection(store=store)))
            assert rows == spark_rows(contest, storeName=store), store
        together = checkpoint.state().read_all().to_pylist()
        assert {row["store"] for row in together} == {"left-keyToNumValues", "left-keyWithIndexToValue", *SIDES[2:]}
        assert all(isinstance(json.loads(row["key"]), dict) for row in together)


# One store with a column family for each kind of state; version 4 orders them by time.
FAMILIES = {
    3: SIDES,
    4: ("left-keyWithTsToValues", "left-tsWithKey", "right-keyWithTsToValues", "right-tsWithKey"),
}


@pytest.mark.parametrize(
    ("layout", "version"),
    [(3, 1), pytest.param(3, 2, marks=IF_IN_FULL), pytest.param(4, 1, marks=IF_IN_FULL), (4, 2)],
)
def test_column_families_of_a_join_are_read_by_name(
    tmp_path: Path, spark: SparkSession, layout: int, version: int
) -> None:
    if layout not in JOIN_LAYOUTS:
        pytest.skip(f"this Spark has no joins in state format {layout}")
    contest = played(spark, join_in(layout), tmp_path, version=version)
    root = copy_of(contest)
    last = contest.newest
    with spark_dstl.open(str(root)) as checkpoint:
        found = {row["column_family"] for row in checkpoint.state().read_all().to_pylist()}
        assert found <= set(FAMILIES[layout])
        for family in FAMILIES[layout]:
            selection = Selection(column_family=family)
            state = read(checkpoint.state(selection=selection))
            assert state == spark_rows(contest, storeName=family), family
            assert bool(state) == (family in found)
            changes = read(checkpoint.changes(1, selection))
            feed = {"readChangeFeed": True, "changeStartBatchId": 1, "changeEndBatchId": 1}
            assert changes == spark_rows(contest, storeName=family, **feed), family
            earlier = read(checkpoint.state(last - 1, selection))
            assert earlier == spark_rows(contest, storeName=family, batchId=last - 1), family


@pytest.mark.parametrize(
    ("processor", "version"),
    [
        pytest.param(LEDGER, 1, marks=IF_IN_FULL),
        (LEDGER, 2),
        pytest.param(GROWING, 1, marks=pytest.mark.skipif(not IN_FULL, reason="like another, without timers")),
    ],
    ids=lambda of: of.name if isinstance(of, Operator) else str(of),
)
def test_state_variables_and_timers_are_read_by_name(
    tmp_path: Path, spark: SparkSession, processor: Operator, version: int
) -> None:
    skip_unless_readable(version)
    contest = played(spark, processor, tmp_path, "stock", version)
    root = copy_of(contest)
    with spark_dstl.open(str(root)) as checkpoint:
        before = objects(root)
        for options in processor.stores:
            if "stateVarName" in options:
                rows = read(checkpoint.state(selection=Selection(column_family=options["stateVarName"])))
                assert rows == spark_rows(contest, **options), options
        whole = checkpoint.state().read_all().to_pylist()
        assert whole
        if processor is LEDGER:
            (family,) = {row["column_family"] for row in whole if "imer" in row["column_family"]}
            timers = read(checkpoint.state(selection=Selection(column_family=family)))
            assert timers
            assert timers == spark_rows(contest, readRegisteredTimers="true")
        assert checkpoint.changes(0).read_all().num_rows > 0
        checkpoint.diff(0, contest.newest).read_all()
        assert objects(root) == before
