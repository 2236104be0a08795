"""A driver that somebody looks at: `monitored_driver.py <spec.json>`.

Runs an aggregation over all its input, with Spark's UI, writes down where that is, and stays until its standard input
ends. Whatever else the test wants of the process is in the settings.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import spark_dstl
from query_driver import aggregation, replace


def main() -> None:
    """Do what the specification says."""
    spec: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    work = Path(spec["work"])
    builder: SparkSession.Builder = SparkSession.builder.appName("monitored")
    for key, value in spec["confs"].items():
        builder = builder.config(key, value)
    spark = spark_dstl.configure(builder, transform_with_state=spec["transform_with_state"]).getOrCreate()
    query = (
        aggregation(spark, work / "input")
        .writeStream.outputMode("update")
        .format("noop")
        .option("checkpointLocation", str(work / "checkpoint"))
        .start()
    )
    query.processAllAvailable()
    progress = [json.dumps(json.loads(one.json)) for one in query.recentProgress]
    replace(work / "progress.jsonl", "".join(f"{line}\n" for line in progress))
    address = spark.sparkContext.uiWebUrl
    assert address is not None
    application = spark.sparkContext.applicationId
    place = {"ui": address, "application": application, "query": str(query.id), "run": str(query.runId)}
    replace(work / "place.json", json.dumps(place))
    sys.stdin.read()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
