# SPDX-License-Identifier: Apache-2.0
"""The demo's Spark programs, each run in a separate process: `flights_query.py <settings.json> stream|check`.

`stream` runs the query from its checkpoint to the end of its input, and appends events to a file. `check` computes the
same result in one batch and compares the two row by row.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from flights_input import SENTINEL
from flights_settings import EventFile, Settings

WATERMARK = "1 hour"
WINDOW = "6 hours"
SLIDE = "2 hours"

FLIGHTS_SCHEMA = "scheduled TIMESTAMP, origin STRING, carrier STRING, flight INT, dest STRING, dep_delay INT"
WEATHER_SCHEMA = "hour TIMESTAMP, station STRING, wind_speed DOUBLE, visibility DOUBLE"

STATE_STORE = "spark.sql.streaming.stateStore"
STOCK_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# The maximum of differing rows in the verdict, per side.
MAX_ROWS_SHOWN = 20


def delays_by_weather(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Flights and their weather per airport, carrier and sliding window; the same program for stream and batch.

    Each flight is joined with the observation of its scheduled hour. The range of times lets the watermark clear the
    join's state. The condition on equal hours adds nothing to the result: it makes the hour a part of the key, so that
    a flight looks up one observation instead of all those of its airport.

    Cancelled flights have no delay: they count as flights, not as departures. Wind and visibility are averaged as
    decimals, so that the result does not depend on the order of rows.
    """
    flights = flights.withWatermark("scheduled", WATERMARK)
    weather = weather.withWatermark("hour", WATERMARK)
    joined = flights.join(
        weather,
        (sf.col("origin") == sf.col("station"))
        & (sf.date_trunc("hour", "scheduled") == sf.col("hour"))
        & (sf.col("scheduled") >= sf.col("hour"))
        & (sf.col("scheduled") < sf.col("hour") + sf.expr("INTERVAL 1 HOUR")),
    ).drop("station", "hour")
    windows = joined.groupBy(sf.window("scheduled", WINDOW, SLIDE), "origin", "carrier").agg(
        sf.count("*").alias("flights"),
        sf.count("dep_delay").alias("departures"),
        sf.avg("dep_delay").alias("mean_delay"),
        sf.avg(sf.col("wind_speed").cast("decimal(8,5)")).alias("mean_wind"),
        sf.avg(sf.col("visibility").cast("decimal(6,2)")).alias("mean_visibility"),
    )
    return windows.select(sf.col("window.start").alias("start"), sf.col("window.end").alias("end"), "*").drop("window")


def stream(settings: Settings) -> None:
    """Run the query to the end of its input, and write an event for every batch."""
    spark = session(settings, "flights")
    flights = spark.readStream.schema(FLIGHTS_SCHEMA).option("maxFilesPerTrigger", 1).json(settings.flights)
    weather = spark.readStream.schema(WEATHER_SCHEMA).option("maxFilesPerTrigger", 1).json(settings.weather)
    events = EventFile(settings.events)
    query = (
        delays_by_weather(flights, weather)
        .writeStream.queryName("delays_by_weather")
        .outputMode("append")
        .option("checkpointLocation", settings.location)
        .foreachBatch(batch_writer(settings, events))
        .trigger(availableNow=True)
        .start()
    )
    events.append(event="started")
    follow(query, events, settings.parent)
    events.append(event="finished")
    spark.stop()


def batch_writer(settings: Settings, events: EventFile) -> Callable[[DataFrame, int], None]:
    """Return a sink with one directory per batch: a repeated batch replaces its output."""

    def write(rows: DataFrame, batch: int) -> None:
        events.append(event="batch", batch=batch)
        rows.write.mode("overwrite").parquet(str(settings.output / f"batch={batch}"))

    return write


def follow(query: StreamingQuery, events: EventFile, parent: int) -> None:
    """Write the query's progress as events until it ends; exit if the parent process has ended."""
    reported = -1
    ended = False
    while not ended:
        ended = not query.isActive
        time.sleep(0.2)
        for progress in query.recentProgress:
            # PySpark 3.5 returns a dictionary.
            found = json.loads(progress.json) if hasattr(progress, "json") else progress
            if found["batchId"] > reported:
                reported = found["batchId"]
                events.append(event="progress", progress=found)
        if os.getppid() != parent:
            sys.exit("the demo that started this query has ended")
    query.awaitTermination()


def check(settings: Settings) -> None:
    """Compare the stream's result with the batch computation over the same files, row by row.

    The batch leaves out the sentinel, because the last watermark keeps its windows open.
    """
    spark = session(settings, "flights-check")
    flights = spark.read.schema(FLIGHTS_SCHEMA).json(settings.flights).where(sf.col("origin") != SENTINEL)
    weather = spark.read.schema(WEATHER_SCHEMA).json(settings.weather)
    expected = delays_by_weather(flights, weather).cache()
    streamed = spark.read.parquet(str(settings.output)).select(expected.columns).cache()
    missing = expected.exceptAll(streamed).cache()
    unexpected = streamed.exceptAll(expected).cache()
    verdict = {
        "expected": expected.count(),
        "streamed": streamed.count(),
        "missing": missing.count(),
        "unexpected": unexpected.count(),
        "missing_rows": shown(missing),
        "unexpected_rows": shown(unexpected),
    }
    settings.verdict.write_text(json.dumps(verdict), encoding="utf-8")
    spark.stop()


def shown(rows: DataFrame) -> list[dict[str, Any]]:
    """Collect the first of the differing rows in the order of their windows, as text."""
    ordered = rows.orderBy("start", "origin", "carrier").limit(MAX_ROWS_SHOWN)
    return [{name: str(value) for name, value in row.asDict().items()} for row in ordered.collect()]


def java_options(settings: Settings) -> str:
    """Options of the driver's JVM, which lives for a minute: the second compiler would cost more time than it saves."""
    log_config = Path(settings.log_config).as_uri()
    return f"-Dlog4j2.configurationFile={log_config} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def session(settings: Settings, name: str) -> SparkSession:
    """Start a session on two cores, with the state in the log unless `--stock` was given."""
    builder: SparkSession.Builder = (
        SparkSession.builder.master("local[2]")
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", java_options(settings))
        .config("spark.local.dir", str(Path(settings.work) / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", settings.partitions)
        .config("spark.sql.streaming.numRecentProgressUpdates", 500)
        .config(f"{STATE_STORE}.rocksdb.changelogCheckpointing.enabled", "true")
    )
    for key, value in settings.storage.items():
        builder = builder.config(key, value)
    if settings.stock:
        return builder.config(f"{STATE_STORE}.providerClass", STOCK_PROVIDER).getOrCreate()

    import spark_dstl

    configured: SparkSession.Builder = spark_dstl.configure(builder)
    return configured.getOrCreate()


if __name__ == "__main__":
    PROGRAMS: dict[str, Callable[[Settings], None]] = {"stream": stream, "check": check}
    PROGRAMS[sys.argv[2]](Settings.load(Path(sys.argv[1])))
