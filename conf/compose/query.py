# SPDX-License-Identifier: Apache-2.0
"""Counts generated clicks by page, with the settings of spark-defaults.conf and the checkpoint CHECKPOINT."""

import os

import spark_dstl
from pyspark.sql import SparkSession

spark = spark_dstl.configure(SparkSession.builder).getOrCreate()
clicks = spark.readStream.format("rate").option("rowsPerSecond", 10).load().selectExpr("value % 3 AS page")
counts = clicks.groupBy("page").count().writeStream.outputMode("complete").format("console")
counts.option("checkpointLocation", os.environ["CHECKPOINT"]).start().awaitTermination()
