# SPDX-License-Identifier: Apache-2.0
"""The driver process of the end-to-end tests: `query_driver.py <spec.json>`.

Runs the queries of the specification to the end of their input, or reads the states of their checkpoints, and exits;
or does so for each specification whose path it gets on its standard input, in turn. It writes its output to files,
because a test may kill the process at any moment. `harness.py` writes the specification and reads the files.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from late_workers import until_workers_connect

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

SCHEMA = "time LONG, key STRING, value LONG"
# Long enough that an aggregation keeps all its windows, so that its state can be compared with the whole input.
AGGREGATION_WATERMARK = "100 days"
JOIN_WATERMARK = "1 minute"
# Background work of a stopped query is checked every five seconds.
LINGER_SECONDS = 7
# The extension of a session whose sinks are tables of Delta.
DELTA = "io.delta.sql.DeltaSparkSessionExtension"

Spec = dict[str, Any]


def main() -> None:
    """Do the task of the specification, or those of others in new sessions with their settings."""
    spec: Spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    spark = session(spec)
    if spec["task"] == "serve":
        for line in sys.stdin:
            path = Path(line.strip())
            asked: Spec = json.loads(path.read_text(encoding="utf-8"))
            separate = spark.newSession()
            for key, value in asked["confs"].items():
                separate.conf.set(key, value)
            replace(path.with_suffix(".done"), error_of(separate, asked))
    else:
        do(spark, spec)
    spark.stop()


def error_of(spark: SparkSession, spec: Spec) -> str:
    """Do the task of a specification; returns the error with its trace, or nothing."""
    try:
        do(spark, spec)
    except Exception:
        for query in spark.streams.active:
            query.stop()
        return traceback.format_exc()
    return ""


def do(spark: SparkSession, spec: Spec) -> None:
    """Do the task of a specification."""
    if spec["task"] == "run":
        until_workers_connect(lambda: run(spark, spec))
    elif spec["task"] == "stop":
        stop(spark, spec)
    else:
        read_state(spark, spec)


def session(spec: Spec) -> SparkSession:
    """The session of the specification; with spark-submit, all settings come from the command line."""
    import spark_dstl

    builder: SparkSession.Builder = SparkSession.builder
    if spec["remote"]:
        # The server has the jar and no settings; this session configures the log.
        session = builder.remote(spec["remote"]).getOrCreate()
        for key, value in spec["confs"].items():
            session.conf.set(key, value)
        return spark_dstl.configure_session(session, transform_with_state=spec["transform_with_state"])
    import_no_pandas()
    return builder.config(map=spec["confs"]).getOrCreate()


def import_no_pandas() -> None:
    """Let PySpark find no pandas: its first call of Java imports it, which takes two seconds, and no query needs it."""
    sys.modules["pandas"] = None  # type: ignore[assignment]


def run(spark: SparkSession, spec: Spec) -> None:
    """Run all queries to the end, and write the number of completed tasks of each running stage to a file."""
    queries = [start(spark, query, spec["interval"], to_nothing=bool(spec["remote"])) for query in spec["queries"]]
    status = Path(spec["status"])
    while any(query.isActive for query in queries):
        if not spec["remote"]:
            replace(status, json.dumps(stages(spark)))
        wait(spec)
    for query in queries:
        query.awaitTermination()


def stop(spark: SparkSession, spec: Spec) -> None:
    """Stop all queries at each of the given fail points, restart them in between, and wait for background work.

    A restart waits for the end of the pause at the fail point.
    """
    markers = [Path(marker) for marker in spec["stop_at"]]
    for marker in markers:
        queries = [start(spark, query, spec["interval"]) for query in spec["queries"]]
        while not marker.exists():
            for query in queries:
                assert query.isActive, query.exception()
            wait(spec)
        for query in queries:
            query.stop()
        print(f"stopped at {marker.name}", flush=True)
        while not marker.with_name(f"{marker.name}.resume").exists():
            wait(spec)
    time.sleep(LINGER_SECONDS)


def wait(spec: Spec) -> None:
    """Wait for a moment; the driver ends with the test that has started it."""
    if spec["parent"] not in (None, os.getppid()):
        sys.exit("the test that started this driver has ended")
    time.sleep(0.1)


def stages(spark: SparkSession) -> list[dict[str, int]]:
    """The running stages, with their numbers of tasks."""
    tracker = spark.sparkContext.statusTracker()
    found = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return [{"tasks": info.numTasks, "completed": info.numCompletedTasks} for info in found if info is not None]


def start(spark: SparkSession, query: Spec, interval: str = "", *, to_nothing: bool = False) -> StreamingQuery:
    """Start one query, which writes a file a batch, or nothing. With an interval it does not end with its input.

    A Spark Connect server gives the Python process of `foreachBatch` ten seconds to connect, too few on a busy machine:
    there, the state shows what a query has processed.
    """
    kinds: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
        "aggregation": aggregation,
        "processed_aggregation": processed_aggregation,
        "join_aggregation": join_aggregation,
        "ticks": ticks,
    }
    result = kinds[query["kind"]](spark, Path(query["input"]))
    writer = (
        result.writeStream.queryName(query["name"])
        .outputMode("append" if query["kind"] == "join_aggregation" else "update")
        .option("checkpointLocation", query["checkpoint"])
        .trigger(**({"processingTime": interval} if interval else {"availableNow": True}))
    )
    if to_nothing:
        return writer.format("noop").start()
    sink = table_writer if spark.conf.get("spark.sql.extensions", "") == DELTA else batch_writer
    return writer.foreachBatch(sink(Path(query["output"]))).start()


def aggregation(spark: SparkSession, source: Path) -> DataFrame:
    """Count and sum per key and sliding window."""
    return windows(read(spark, source / "events").withWatermark("at", AGGREGATION_WATERMARK))


def processed_aggregation(spark: SparkSession, source: Path) -> DataFrame:
    """The same aggregation by a stateful processor."""
    each = read(spark, source / "events").select(sf.window("at", "20 minutes", "10 minutes"), "key", "value")
    grouped = each.select(sf.unix_timestamp("window.start").alias("start"), "key", "value").groupBy("start", "key")
    return grouped.transformWithState(totals(), "start LONG, key STRING, count LONG, sum LONG", "Update", "None")


def totals() -> StatefulProcessor:
    """A processor that keeps the count and the sum of each key. Spark 3.5 has no such processors."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Totals(StatefulProcessor):
        """Keeps the count and the sum of each key."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            self._totals = handle.getValueState("totals", "count LONG, sum LONG")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
            values = [row.value for row in rows]
            count, total = self._totals.get() or (0, 0)
            after = (count + len(values), total + sum(values))
            self._totals.update(after)
            yield Row(start=key[0], key=key[1], count=after[0], sum=after[1])

        def close(self) -> None:
            pass

    return Totals()


def join_aggregation(spark: SparkSession, source: Path) -> DataFrame:
    """Sums of events times factors of the same key that are at most five minutes older, per sliding window."""
    events = read(spark, source / "events").withWatermark("at", JOIN_WATERMARK)
    factors = (
        read(spark, source / "factors")
        .withWatermark("at", JOIN_WATERMARK)
        .select(sf.col("at").alias("since"), sf.col("key").alias("factor_key"), sf.col("value").alias("factor"))
    )
    joined = events.join(
        factors,
        (sf.col("key") == sf.col("factor_key"))
        & (sf.col("at") >= sf.col("since"))
        & (sf.col("at") <= sf.col("since") + sf.expr("INTERVAL 5 MINUTES")),
    )
    return windows(joined.select("at", "key", (sf.col("value") * sf.col("factor")).alias("value")))


def ticks(spark: SparkSession, source: Path) -> DataFrame:
    """Count and sum of the numbers of a source without a log, which has the same number of rows in each batch."""
    shape = json.loads((source / "ticks.json").read_text(encoding="utf-8"))
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", shape["rows"]).load()
    keyed = rows.groupBy(sf.concat(sf.lit("key-"), (sf.col("value") % shape["keys"]).cast("string")).alias("key"))
    totals = keyed.agg(sf.count("*").alias("count"), sf.sum("value").alias("sum"))
    return totals.select(sf.lit(0).alias("start"), "key", "count", "sum")


def read(spark: SparkSession, directory: Path) -> DataFrame:
    """A stream with one file in each batch, or from Kafka with the options in a file of the directory."""
    kafka = directory / "kafka.options"
    if kafka.exists():
        messages = spark.readStream.format("kafka").options(**json.loads(kafka.read_text(encoding="utf-8"))).load()
        stream = messages.select(sf.from_json(sf.col("value").cast("string"), SCHEMA).alias("row")).select("row.*")
    else:
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(directory))
    return stream.withColumn("at", sf.timestamp_seconds("time"))


def windows(rows: DataFrame) -> DataFrame:
    """The rows aggregated to (start, key, count, sum)."""
    grouped = rows.groupBy(sf.window("at", "20 minutes", "10 minutes"), "key")
    return grouped.agg(sf.count("*").alias("count"), sf.sum("value").alias("sum")).select(
        sf.unix_timestamp("window.start").alias("start"), "key", "count", "sum"
    )


def batch_writer(output: Path) -> Callable[[DataFrame, int], None]:
    """A sink with one file for each batch, which a repeated batch replaces."""
    output.mkdir(parents=True, exist_ok=True)

    def write(rows: DataFrame, batch: int) -> None:
        collected = [row.asDict() for row in rows.collect()]
        replace(output / f"{batch}.json", json.dumps(collected))

    return write


def table_writer(output: Path) -> Callable[[DataFrame, int], None]:
    """A sink with one file for each batch, read from a table of Delta, which skips a batch that it has."""
    write_file = batch_writer(output)
    table = f"{output}.table"

    def write(rows: DataFrame, batch: int) -> None:
        once = rows.withColumn("batch", sf.lit(batch)).write.format("delta").mode("append")
        once.option("txnAppId", "query").option("txnVersion", batch).save(table)
        of_batch = rows.sparkSession.read.format("delta").load(table).where(sf.col("batch") == batch).drop("batch")
        write_file(of_batch, batch)

    return write


def read_state(spark: SparkSession, spec: Spec) -> None:
    """Read the retained versions of all stores with Spark's state reader, and write the rows to a file.

    Reads the versions that the specification lists, or all if it lists none.
    """
    if spec["touch_streams"]:
        _ = spark.streams
    versions = []
    for query in spec["queries"]:
        operators = spark.read.format("state-metadata").load(query["checkpoint"])
        for operator in operators.select("operatorId", "operatorName", "minBatchId", "maxBatchId").distinct().collect():
            retained = range(operator.minBatchId, operator.maxBatchId + 1)
            batches = [batch for batch in retained if batch in (query["versions"] or retained)]
            sides = ("left", "right") if "Join" in operator.operatorName else (None,)
            for side in sides:
                states = [state(spark, query, operator.operatorId, batch, side) for batch in batches]
                # One job for all versions is faster.
                rows = reduce(DataFrame.unionAll, states).collect()
                versions += [
                    {
                        "query": query["name"],
                        "operator": operator.operatorId,
                        "batch": batch,
                        "rows": [list(row)[1:] for row in rows if row.batch == batch],
                    }
                    for batch in batches
                ]
    replace(Path(spec["state"]), json.dumps(versions))


def state(spark: SparkSession, query: Spec, operator: int, batch: int, side: str | None) -> DataFrame:
    """The rows of one version of one operator, after the number of its batch; of a join, only their number."""
    reader = spark.read.format("statestore").option("operatorId", operator).option("batchId", batch)
    if side is not None:
        reader = reader.option("joinSide", side)
    if query["kind"] == "processed_aggregation":
        reader = reader.option("stateVarName", "totals")
    rows = reader.load(query["checkpoint"])
    number = sf.lit(batch).alias("batch")
    if query["kind"] == "join_aggregation":
        return rows.agg(sf.count("*").alias("rows")).select(number, "rows")
    if query["kind"] == "processed_aggregation":
        return rows.select(number, "key.start", "key.key", "value.count", "value.sum")
    return rows.select(number, sf.unix_timestamp("key.window.start"), "key.key", "value.count", "value.sum")


def replace(path: Path, text: str) -> None:
    """Replace a file atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    main()
