# SPDX-License-Identifier: Apache-2.0
"""Stateful operators of Python as small queries; see also `width_processors.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from shared_session import Operator


def late(events: DataFrame, delay: str = "1 minute") -> DataFrame:
    """Events with a watermark, which removes state."""
    return events.withWatermark("at", delay)


def aggregation(events: DataFrame) -> DataFrame:
    return events.groupBy("key").agg(sf.count("*"), sf.sum("value"), sf.collect_set(sf.expr("value % 7")))


def joined(kind: str) -> Callable[[DataFrame], DataFrame]:
    """A join of even and odd values; an outer one returns rows without a partner after the watermark passes them."""

    def query(events: DataFrame) -> DataFrame:
        left = late(events.where("value % 2 = 0")).select("at", "key", "value")
        right = late(events.where("value % 2 = 1")).selectExpr("at AS since", "key AS other", "value AS factor")
        near = "key = other AND at BETWEEN since AND since + INTERVAL 5 MINUTES"
        return left.join(right, sf.expr(near), kind)

    return query


def totals(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Count and sum of a key; a timeout returns a last row and removes the state."""
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
    # Of 90 keys, many time out before their next event.
    keyed = late(events).withColumn("key", sf.concat("key", sf.expr("value % 9")))
    columns = "key STRING, count LONG, sum LONG"
    timeout = GroupStateTimeout.EventTimeTimeout
    return keyed.groupBy("key").applyInPandasWithState(totals, columns, "count LONG, sum LONG", "update", timeout)


SIDES = ({"joinSide": "left"}, {"joinSide": "right"})
OPERATORS = [
    Operator("aggregation", aggregation, "update"),
    Operator("stream-stream-join", joined("leftOuter"), stores=SIDES),
    Operator("apply-in-pandas-with-state", apply_in_pandas, "update"),
]
