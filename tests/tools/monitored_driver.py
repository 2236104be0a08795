# SPDX-License-Identifier: Apache-2.0
"""A driver with a UI: `monitored_driver.py <spec.json>`.

Runs an aggregation over all its input, with Spark's UI or on a Spark Connect server, writes the UI's address and the
query's metrics to files, and ends with its standard input.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import spark_dstl
from query_driver import aggregation, replace


def main() -> None:
    """Run the query of the specification."""
    spec: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    work = Path(spec["work"])
    spark = session(spec)
    # No batches without input.
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    listener = spark_dstl.MetricsListener(progress_file=work / "progress.jsonl")
    spark.streams.addListener(listener)
    query = (
        aggregation(spark, work / "input")
        .writeStream.outputMode("update")
        .queryName("windows")
        .format("noop")
        .option("checkpointLocation", str(work / "checkpoint"))
        .start()
    )
    query.processAllAvailable()
    replace(work / "metrics.json", json.dumps(newest_metrics(query, listener), default=str))
    listener.write_parquet(work / "history.parquet")
    place = {"ui": "", "application": "", "query": str(query.id), "run": str(query.runId)}
    if not spec["remote"]:
        replace(work / "mbeans.txt", "\n".join(mbeans(spark)))
        place |= {"ui": spark.sparkContext.uiWebUrl or "", "application": spark.sparkContext.applicationId}
    replace(work / "place.json", json.dumps(place))
    sys.stdin.read()
    query.stop()
    spark.stop()


def session(spec: dict[str, Any]) -> SparkSession:
    """The session of the specification."""
    builder: SparkSession.Builder = SparkSession.builder.appName("my-clicks")
    if spec["remote"]:
        return spark_dstl.configure_session(builder.remote(spec["remote"]).getOrCreate())
    return spark_dstl.configure(builder.config(map=spec["confs"])).getOrCreate()


def mbeans(spark: SparkSession) -> list[str]:
    """The metrics of the log in this process' JMX, as `name=value`. Spark has timers of its listeners besides."""
    gateway: Any = spark.sparkContext._gateway
    jvm = gateway.jvm
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    pattern = jvm.javax.management.ObjectName("metrics:name=*.dstl.*,type=gauges")

    def ask(method: str, *arguments: Any) -> Any:
        # py4j cannot call the server's class; reflection can call its interface.
        methods = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
        found = next(of for of in methods if of.getName() == method)
        given = gateway.new_array(jvm.java.lang.Object, len(arguments))
        for place, argument in enumerate(arguments):
            given[place] = argument
        return found.invoke(server, given)

    names = ask("queryNames", pattern, pattern)
    return [f"{name.getKeyProperty('name')}={ask('getAttribute', name, 'Value')}" for name in names]


def newest_metrics(query: StreamingQuery, listener: spark_dstl.MetricsListener) -> dict[str, Any]:
    """The metrics of the query's newest batch, as soon as the listener has them too."""
    while True:
        newest = spark_dstl.metrics(query)
        if newest is not None and newest in listener.metrics:
            return dataclasses.asdict(newest)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
