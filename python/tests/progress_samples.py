# SPDX-License-Identifier: Apache-2.0
"""Progress of streaming queries as Spark tells it, with what a test cares for."""

from types import SimpleNamespace
from typing import Any, cast

from pyspark.sql.streaming.listener import StreamingQueryProgress

from spark_dstl import MetricsListener

DURATIONS = {
    # "triggerExecution" is missing now and then.
    "latestOffset": 20,
    "getBatch": 3,
    "queryPlanning": 30,
    "walCommit": 40,
    "addBatch": 300,
    "commitOffsets": 60,
}


def operator(rows: int = 10, **custom: int) -> dict[str, Any]:
    return {
        "operatorName": "stateStoreSave",
        "numRowsTotal": rows,
        "numRowsUpdated": 1,
        "numRowsRemoved": 0,
        "allUpdatesTimeMs": 1,
        "allRemovalsTimeMs": 0,
        "commitTimeMs": 1,
        "memoryUsedBytes": 1000,
        "numRowsDroppedByWatermark": 0,
        "numShufflePartitions": 4,
        "numStateStoreInstances": 4,
        "customMetrics": {"rocksdbGetCount": 5, **custom},
    }


def source(rows: int) -> dict[str, Any]:
    return {
        "description": "rate",
        "startOffset": 1,
        "endOffset": 2,
        "latestOffset": 2,
        "numInputRows": rows,
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
        "metrics": {},
    }


def progress(batch: int = 7, *operators: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A progress as Spark writes it down."""
    return {
        "id": "95f92dd6-1291-403c-b2da-bfefda0d0c3e",
        "runId": "aface93f-f7d0-46f5-9d72-6bf29a5c150a",
        "name": "clicks",
        "timestamp": "2026-01-02T03:04:05.678Z",
        "batchId": batch,
        "batchDuration": 500,
        "numInputRows": 42,
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
        "durationMs": DURATIONS,
        "eventTime": {},
        "stateOperators": list(operators),
        "sources": [source(40), source(2)],
        "sink": {"description": "noop", "numOutputRows": -1},
        "observedMetrics": {},
        **changes,
    }


def told(listener: MetricsListener, *batches: dict[str, Any]) -> None:
    for batch in batches:
        # The event has nothing else.
        listener.onQueryProgress(cast(Any, SimpleNamespace(progress=StreamingQueryProgress.fromJson(batch))))
