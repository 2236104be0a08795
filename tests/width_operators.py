"""Every stateful operator that can be had from Python, as small queries; see also `width_processors.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from shared_session import Operator


def late(events: DataFrame, delay: str = "1 minute") -> DataFrame:
    """With a watermark, so that state comes and goes."""
    return events.withWatermark("at", delay)


def aggregation(events: DataFrame) -> DataFrame:
    return events.groupBy("key").agg(sf.count("*"), sf.sum("value"), sf.collect_set(sf.expr("value % 7")))


def tumbling(events: DataFrame) -> DataFrame:
    return late(events).groupBy(sf.window("at", "10 minutes"), "key").agg(sf.sum("value"))


def sliding(events: DataFrame) -> DataFrame:
    return late(events).groupBy(sf.window("at", "20 minutes", "10 minutes"), "key").agg(sf.max("value"))


def sessions(events: DataFrame) -> DataFrame:
    return late(events).groupBy(sf.session_window("at", "3 minutes"), sf.expr("value % 3")).agg(sf.count("*"))


def duplicates(events: DataFrame) -> DataFrame:
    # Without a watermark nothing is forgotten: 12 keys and no more.
    return events.select("key").dropDuplicates()


def duplicates_within_watermark(events: DataFrame) -> DataFrame:
    # Which of several rows is kept is up to Spark; their number and keys are not.
    return late(events, "20 minutes").dropDuplicatesWithinWatermark(["key"]).select("key")


def join(events: DataFrame) -> DataFrame:
    """A left outer one: rows without a partner come out of the state when their time is over."""
    left = late(events.where("value % 2 = 0")).select("at", "key", "value")
    right = late(events.where("value % 2 = 1")).selectExpr("at AS since", "key AS other", "value AS factor")
    near = sf.expr("key = other AND at BETWEEN since AND since + INTERVAL 5 MINUTES")
    return left.join(right, near, "leftOuter")


def limited(events: DataFrame) -> DataFrame:
    # Which rows come first is up to Spark; how many come is not.
    return events.limit(50).selectExpr("1 AS one")


def several(events: DataFrame) -> DataFrame:
    """Three stateful operators in one query, one behind the other."""
    once = late(events).dropDuplicates(["key", "value", "at"])
    windows = once.groupBy(sf.window("at", "5 minutes"), "key").agg(sf.sum("value").alias("sum"))
    return windows.groupBy(sf.window(sf.window_time("window"), "20 minutes")).agg(sf.max("sum"))


def totals(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Count and sum of a key so far; when its time is over, it says so and is forgotten."""
    if state.hasTimedOut:
        count, total = state.get
        state.remove()
        yield pd.DataFrame({"key": [f"{key[0]} is over"], "count": [count], "sum": [total]})
        return
    count, total = state.getOption or (0, 0)
    for frame in frames:
        count, total = count + len(frame), total + int(frame["value"].sum())
    state.update((count, total))
    state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + 40 * 60 * 1000)
    yield pd.DataFrame({"key": [key[0]], "count": [count], "sum": [total]})


def apply_in_pandas(events: DataFrame) -> DataFrame:
    # 90 keys, so that many do not come again before they time out.
    keyed = late(events).withColumn("key", sf.concat("key", sf.expr("value % 9")))
    columns = "key STRING, count LONG, sum LONG"
    timeout = GroupStateTimeout.EventTimeTimeout
    return keyed.groupBy("key").applyInPandasWithState(totals, columns, "count LONG, sum LONG", "update", timeout)


SIDES = ({"joinSide": "left"}, {"joinSide": "right"})
LAST = ({"operatorId": "0"}, {"operatorId": "1"}, {"operatorId": "2"})
OPERATORS = [
    Operator("aggregation", aggregation, "update"),
    Operator("complete-aggregation", aggregation, "complete"),
    Operator("tumbling-windows", tumbling),
    Operator("sliding-windows", sliding, "update"),
    Operator("session-windows", sessions),
    Operator("drop-duplicates", duplicates),
    Operator("drop-duplicates-within-watermark", duplicates_within_watermark),
    Operator("stream-stream-join", join, stores=SIDES),
    Operator("limit", limited),
    Operator("three-operators", several, stores=LAST),
    Operator("apply-in-pandas-with-state", apply_in_pandas, "update"),
]
