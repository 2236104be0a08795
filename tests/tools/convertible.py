# SPDX-License-Identifier: Apache-2.0
"""Small queries with each stateful operator of Spark's default provider."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from settings import OURS, STATE_STORE
from shared_session import Operator
from width_operators import SIDES, aggregation, apply_in_pandas, joined, late

STREAMING = "spark.sql.streaming"
GROUP_FORMAT = f"{STREAMING}.flatMapGroupsWithState.stateFormatVersion"
JOIN_FORMAT = f"{STREAMING}.join.stateFormatVersion"
AGGREGATION_FORMAT = f"{STREAMING}.aggregation.stateFormatVersion"


def without_keys(events: DataFrame) -> DataFrame:
    return events.agg(sf.count("*"), sf.max("value"), sf.min("key"))


def windows(events: DataFrame) -> DataFrame:
    return late(events).groupBy(sf.window("at", "10 minutes"), "key").agg(sf.sum("value"), sf.avg("value"))


def sessions(events: DataFrame) -> DataFrame:
    return late(events).groupBy(sf.session_window("at", "90 seconds"), "key").agg(sf.count("*"), sf.sum("value"))


def duplicates(events: DataFrame) -> DataFrame:
    return events.select("key", (sf.col("value") % 5).alias("rest")).dropDuplicates()


def duplicates_by_time(events: DataFrame) -> DataFrame:
    return late(events).select("key", "at").dropDuplicates(["key", "at"])


def duplicates_within_watermark(events: DataFrame) -> DataFrame:
    return late(events, "10 minutes").select("key", "at").dropDuplicatesWithinWatermark(["key"])


def in_scala(name: str) -> Callable[[DataFrame], DataFrame]:
    """A function over groups that only Scala has."""

    def query(events: DataFrame) -> DataFrame:
        session = events.sparkSession
        functions = getattr(session._jvm, f"{OURS}.GroupStates")
        return DataFrame(getattr(functions, name)(late(events)._jdf), session)

    return query


def limited(events: DataFrame) -> DataFrame:
    # The rows of three files and of a part of the fourth.
    return events.select("key", "value").limit(100)


def chained(events: DataFrame) -> DataFrame:
    minutes = duplicates_by_time(events).groupBy(sf.window("at", "10 minutes"), "key").count()
    return minutes.groupBy(sf.window(sf.window_time("window"), "30 minutes")).agg(sf.sum("count"))


CONVERTIBLE = [
    Operator("aggregation", aggregation, "update"),
    Operator("aggregation-without-keys-format-1", without_keys, "complete", confs={AGGREGATION_FORMAT: "1"}),
    Operator("aggregation-format-1-with-windows", windows, confs={AGGREGATION_FORMAT: "1"}),
    Operator(
        "windows-with-row-checksums-and-offsets-format-2",
        windows,
        "update",
        confs={
            f"{STATE_STORE}.rowChecksum.enabled": "true",
            f"{STATE_STORE}.rowChecksum.readVerificationRatio": "1",
            f"{STREAMING}.offsetLog.formatVersion": "2",
        },
    ),
    Operator("session-windows", sessions),
    Operator("duplicates", duplicates),
    Operator("duplicates-by-time", duplicates_by_time),
    Operator("duplicates-within-watermark", duplicates_within_watermark),
    Operator("join-inner", joined("inner"), stores=SIDES),
    Operator("join-inner-format-1", joined("inner"), stores=SIDES, confs={JOIN_FORMAT: "1"}),
    Operator("join-left-outer", joined("leftOuter"), stores=SIDES),
    Operator("join-right-outer", joined("rightOuter"), stores=SIDES),
    Operator("join-full-outer", joined("fullOuter"), stores=SIDES),
    Operator("join-left-semi", joined("leftSemi"), stores=SIDES),
    Operator("map-groups-format-2", in_scala("map"), "update", confs={GROUP_FORMAT: "2"}),
    # Spark's check fails on its own state in this format: the column of timeouts is wider than in the schema.
    Operator(
        "flat-map-groups-format-1",
        in_scala("flatMap"),
        confs={GROUP_FORMAT: "1", f"{STATE_STORE}.formatValidation.enabled": "false"},
    ),
    Operator("flat-map-groups-format-2", in_scala("flatMap"), confs={GROUP_FORMAT: "2"}),
    Operator("apply-in-pandas", apply_in_pandas, "update"),
    Operator("limit", limited),
    Operator("three-operators", chained, stores=({"operatorId": "0"}, {"operatorId": "1"}, {"operatorId": "2"})),
]
