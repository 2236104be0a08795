# SPDX-License-Identifier: Apache-2.0
"""`transformWithState` from Python, with rows and with Pandas.

Processors for every kind of state, timers, TTL, initial state, and a state with a changing schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.group import GroupedData
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from shared_session import Operator

NAMES = ("key", "what", "count", "recent", "kinds")
OUTPUT = "key STRING, what STRING, count LONG, recent STRING, kinds STRING"
FORGET_AFTER_MS = 15 * 60 * 1000
# One expires before the next batch, the other not during a test.
SHORT_MS, LONG_MS = 1, 3_600_000


class InRows(StatefulProcessor):
    """A processor that returns rows."""

    def pack(self, *columns: Any) -> Any:
        return Row(**dict(zip(NAMES, columns, strict=True)))

    def close(self) -> None:
        pass


class InFrames:
    """A mixin for processors that return frames, each with a row."""

    def pack(self, *columns: Any) -> Any:
        return pd.DataFrame({name: [column] for name, column in zip(NAMES, columns, strict=True)})


class Ledger(InRows):
    """Keeps a count, the values of the last batch and counts of kinds; a timer after the last row removes them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._count = handle.getValueState("count", "count LONG")
        self._recent = handle.getListState("recent", "value LONG")
        self._kinds = handle.getMapState("kinds", "kind LONG", "count LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
        taken = [row for some in rows for row in self.unpack(some)]
        before = self._count.get()
        self._count.update(((before[0] if before else 0) + len(taken),))
        recent = list(self._recent.get())
        self._recent.put([(value,) for _, value in sorted(taken)])
        self._recent.appendValue((len(recent),))
        for _, value in sorted(taken):
            kind = (value % 3,)
            found = self._kinds.getValue(kind)
            self._kinds.updateValue(kind, ((found[0] if found else 0) + 1,))
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(max(time for time, _ in taken) * 1000 + FORGET_AFTER_MS)
        yield self.report(key, "rows")

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
        yield self.report(key, "over")
        self._count.clear()
        self._recent.clear()
        self._kinds.removeKey((0,))
        self._kinds.clear()

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: ARG002, N802, N803
        for count in self.initial(initialState):
            self._count.update((count,))

    def report(self, key: Any, what: str) -> Any:
        """The whole state of a key."""
        count = self._count.get()
        recent = [value for (value,) in self._recent.get()]
        kinds = sorted((kind[0], number[0]) for kind, number in self._kinds.iterator())
        return self.pack(key[0], what, count[0] if count else -1, str(recent), str(kinds))

    def unpack(self, rows: Any) -> list[tuple[int, int]]:
        return [(rows.time, rows.value)]

    def initial(self, state: Any) -> list[int]:
        return [state.start]


class PandasLedger(InFrames, Ledger):
    """The same processor with frames instead of rows."""

    def unpack(self, rows: Any) -> list[tuple[int, int]]:
        return [(int(time), int(value)) for time, value in zip(rows["time"], rows["value"], strict=True)]

    def initial(self, state: Any) -> list[int]:
        return [int(start) for start in state["start"]]


class Forgetful(InRows):
    """Counts the rows of a key in states with a long and with a short TTL."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._long = handle.getValueState("long", "count LONG", LONG_MS)
        self._short = handle.getValueState("short", "count LONG", SHORT_MS)
        self._listed = handle.getListState("listed", "count LONG", LONG_MS)
        self._mapped = handle.getMapState("mapped", "name STRING", "count LONG", SHORT_MS)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
        number = sum(self.size(some) for some in rows)
        long, short = self._long.get(), self._short.get()
        mapped = self._mapped.getValue(("name",))
        self._long.update(((long[0] if long else 0) + number,))
        self._short.update((number,))
        self._listed.appendValue((number,))
        self._mapped.updateValue(("name",), (number,))
        listed = [count for (count,) in self._listed.get()]
        yield self.pack(key[0], "rows", long[0] if long else 0, str(listed), f"{short} {mapped}")

    def size(self, rows: Any) -> int:  # noqa: ARG002
        return 1


class PandasForgetful(InFrames, Forgetful):
    """The same processor with frames instead of rows."""

    def size(self, rows: Any) -> int:
        return len(rows)


class Growing(InRows):
    """Counts the rows of a key; a later version also sums their values."""

    def __init__(self, *, sums: bool) -> None:
        self._sums = sums

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._totals = handle.getValueState("totals", "count LONG, sum LONG" if self._sums else "count LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
        values = [value for some in rows for value in self.values(some)]
        before = self._totals.get() or (0, 0)
        count = before[0] + len(values)
        # State of the earlier version has no sum.
        total = (before[1] or 0) + sum(values) if self._sums else -1
        self._totals.update((count, total) if self._sums else (count,))
        yield self.pack(key[0], "rows", count, str(total), str(before))

    def values(self, rows: Any) -> list[int]:
        return [rows.value]


class PandasGrowing(InFrames, Growing):
    """The same processor with frames instead of rows."""

    def values(self, rows: Any) -> list[int]:
        return [int(value) for value in rows["value"]]


def keyed(events: DataFrame) -> DataFrame:
    """Events with many keys, some of which expire before their next event."""
    return events.withWatermark("at", "1 minute").withColumn("key", sf.concat("key", sf.expr("value % 5")))


def starts(events: DataFrame) -> Any:
    """Initial counts of keys with events and of one without."""
    rows = [(f"key-{number}0", number * 1000) for number in (1, 2, 3, 99)]
    return events.sparkSession.createDataFrame(rows, "key STRING, start LONG").groupBy("key")


def rows(events: DataFrame) -> DataFrame:
    grouped = keyed(events).groupBy("key")
    return grouped.transformWithState(Ledger(), OUTPUT, "Update", "EventTime", starts(events))


def frames(events: DataFrame) -> DataFrame:
    grouped = keyed(events).groupBy("key")
    return grouped.transformWithStateInPandas(PandasLedger(), OUTPUT, "Update", "EventTime", starts(events))


def forgetful(events: DataFrame) -> DataFrame:
    return events.groupBy("key").transformWithState(Forgetful(), OUTPUT, "Update", "ProcessingTime")


def forgetful_frames(events: DataFrame) -> DataFrame:
    grouped = events.groupBy("key")
    return grouped.transformWithStateInPandas(PandasForgetful(), OUTPUT, "Update", "ProcessingTime")


def growing(events: DataFrame, *, sums: bool = False) -> DataFrame:
    return events.groupBy("key").transformWithState(Growing(sums=sums), OUTPUT, "Update", "None")


def growing_frames(events: DataFrame, *, sums: bool = False) -> DataFrame:
    grouped = events.groupBy("key")
    return grouped.transformWithStateInPandas(PandasGrowing(sums=sums), OUTPUT, "Update", "None")


# Only this encoding allows a schema to change.
AVRO = {"spark.sql.streaming.stateStore.encodingFormat": "avro"}
VARIABLES = (
    {"stateVarName": "count"},
    {"stateVarName": "recent"},
    {"stateVarName": "kinds"},
    {"readRegisteredTimers": "true"},
)
_ALL = [
    Operator("transform-with-state", rows, "update", stores=VARIABLES),
    Operator("transform-with-state-in-pandas", frames, "update", stores=VARIABLES),
    # Its state holds the times of its expiry, which differ in each run. Spark would run batches without input without
    # an end, because time passes.
    Operator("transform-with-state-ttl", forgetful, "update", stores=(), without_input=False),
    Operator("transform-with-state-in-pandas-ttl", forgetful_frames, "update", stores=(), without_input=False),
    Operator(
        "transform-with-state-another-schema",
        growing,
        "update",
        stores=({"stateVarName": "totals"},),
        confs=AVRO,
        later=partial(growing, sums=True),
    ),
    Operator(
        "transform-with-state-in-pandas-another-schema",
        growing_frames,
        "update",
        stores=({"stateVarName": "totals"},),
        confs=AVRO,
        later=partial(growing_frames, sums=True),
    ),
]
# The first PySpark with `transformWithState` has it only with Pandas.
PROCESSORS = [of for of in _ALL if "in-pandas" in of.name or hasattr(GroupedData, "transformWithState")]
LEDGER = PROCESSORS[0]
GROWING = next(of for of in PROCESSORS if "another-schema" in of.name)
