# SPDX-License-Identifier: Apache-2.0
"""The figures of a batch, from Spark's progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_dstl.errors import InvalidProgress

if TYPE_CHECKING:
    from pyspark.sql.connect.streaming.query import StreamingQuery as ConnectQuery
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class QueryMetrics:
    """The figures of one batch. Times are in milliseconds, sizes in bytes; docs/metrics.md explains them.

    The figures of the log are None for a query without stateful operators, and for one with the name of Spark's own
    provider. The figures from `barrier_wait_ms` on are of the previous batch or the one before it, because the barrier
    follows the tasks that report.
    """

    query_id: str
    """The same for all runs on a checkpoint."""
    run_id: str
    """Of this start of the query."""
    name: str | None
    """The query's name; None without one."""
    batch: int
    """The number of the batch."""
    started_at: datetime
    """When the batch began, in UTC."""
    input_rows: int
    """Rows read from all sources."""

    batch_ms: int
    """The whole batch, from trigger to end."""
    source_ms: int
    """Getting the new offsets of the sources."""
    planning_ms: int
    """Planning the batch's query."""
    offsets_write_ms: int
    """Writing the entry `offsets/N`."""
    tasks_ms: int
    """Running the batch: its jobs, with the writes of the sink."""
    commit_ms: int
    """The commit: the barrier, and writing the entry `commits/N`."""

    state_rows: int
    """Rows in the state of all operators."""
    state_memory_bytes: int
    """Memory of the state's stores in executors."""

    seal_ms: int | None
    """Sealing at the end of tasks, summed over tasks."""
    back_pressure_ms: int | None
    """The wait of tasks for uploads in flight, summed over tasks."""
    replayed_segments: int | None
    """Changelogs read from the log to rebuild stores."""
    replayed_bytes: int | None
    """Bytes of these changelogs."""
    replayed_records: int | None
    """Change records that stores replayed while loading."""

    # Of one of the last two batches; None if the barrier had not reported, as in the first batch of a run.
    barrier_wait_ms: int | None
    """The barrier's wait until all changes were durable."""
    commit_entry_write_ms: int | None
    """Writing the commit entry, hedged attempts included."""
    commit_entry_bytes: int | None
    """The size of the commit entry."""
    inline_bytes: int | None
    """Bytes of the batch's changes in the commit entry."""
    uploaded_bytes: int | None
    """Bytes of the batch's changes in data files."""
    segments: int | None
    """Segments of the batch: changelogs, and other parts of the stores' versions."""
    log_bytes: int | None
    """The size of the log: retained commit entries, and the changes that they name in data files."""
    snapshots: int | None
    """Snapshots of stores that are new in the commit entry."""
    snapshot_bytes: int | None
    """Bytes written for these snapshots."""

    @staticmethod
    def from_progress(progress: Mapping[str, Any] | str) -> QueryMetrics:
        """Read a `StreamingQueryProgress`: `progress` is the object, its JSON, or the parsed JSON.

        Raises `InvalidProgress` for anything else.
        """
        try:
            if isinstance(progress, Mapping):
                found = _read(progress)
            else:
                # In PySpark 3.5 the progress of a listener's event is no mapping, but has its JSON.
                found = _read(json.loads(progress if isinstance(progress, str) else progress.json))
        except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise InvalidProgress(f"not the progress of a streaming query: {_short(progress)}") from error
        for name, value in vars(found).items():
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                # Spark counts in longs, and neither Arrow nor matplotlib takes more.
                what = f"{name} is {value}, more than a long holds"
                raise InvalidProgress(f"not the progress of a streaming query: {what}")
        return found


def metrics(query: StreamingQuery | ConnectQuery) -> QueryMetrics | None:
    """Return the figures of the newest finished batch of `query`; None before the end of its first batch.

    Works for queries of a session with a JVM and of Spark Connect, with one request to the driver.

    ```python
    newest = spark_dstl.metrics(query)
    if newest is not None:
        print(newest.batch, newest.batch_ms, newest.barrier_wait_ms)
    ```

    Raises `InvalidProgress` if Spark's progress is not what this release reads.
    """
    progress = query.lastProgress
    return None if progress is None else QueryMetrics.from_progress(progress)


def _read(progress: Mapping[str, Any]) -> QueryMetrics:
    durations: Mapping[str, int] = progress["durationMs"]
    operators = progress["stateOperators"]

    def took(*names: str) -> int:
        return sum(int(durations.get(name) or 0) for name in names)

    def reported(name: str) -> int | None:
        values = [operator["customMetrics"][name] for operator in operators if name in operator["customMetrics"]]
        # One operator alone reports the figures of the whole query.
        return sum(map(int, values)) if values else None

    # The barrier reports after the tasks. A batch whose tasks had no report, as the first one of a run, has zeros.
    is_known = bool(reported("dstlLogBytes"))

    def by_the_barrier(name: str) -> int | None:
        return reported(name) if is_known else None

    name = progress.get("name")
    return QueryMetrics(
        query_id=str(progress["id"]),
        run_id=str(progress["runId"]),
        name=None if name is None else str(name),
        batch=int(progress["batchId"]),
        started_at=datetime.fromisoformat(str(progress["timestamp"]).replace("Z", "+00:00")),
        # Spark Connect has no sum.
        input_rows=sum(int(source["numInputRows"]) for source in progress["sources"]),
        # Spark 3.5 has `triggerExecution` alone; later releases sometimes omit it, and repeat it as `batchDuration`.
        batch_ms=int(progress["batchDuration"] if "batchDuration" in progress else durations["triggerExecution"]),
        source_ms=took("latestOffset", "getOffset", "getBatch"),
        planning_ms=took("queryPlanning"),
        offsets_write_ms=took("walCommit"),
        tasks_ms=took("addBatch"),
        commit_ms=took("commitOffsets"),
        state_rows=sum(int(operator["numRowsTotal"]) for operator in operators),
        state_memory_bytes=sum(int(operator["memoryUsedBytes"]) for operator in operators),
        seal_ms=reported("dstlSealTimeMs"),
        back_pressure_ms=reported("dstlBackPressureTimeMs"),
        replayed_segments=reported("dstlReplayedSegments"),
        replayed_bytes=reported("dstlReplayedBytes"),
        replayed_records=reported("dstlReplayedRecords"),
        barrier_wait_ms=by_the_barrier("dstlBarrierWaitMs"),
        commit_entry_write_ms=by_the_barrier("dstlCommitEntryWriteMs"),
        commit_entry_bytes=by_the_barrier("dstlCommitEntryBytes"),
        inline_bytes=by_the_barrier("dstlInlineBytes"),
        uploaded_bytes=by_the_barrier("dstlUploadedBytes"),
        segments=by_the_barrier("dstlSegments"),
        log_bytes=by_the_barrier("dstlLogBytes"),
        snapshots=by_the_barrier("dstlSnapshots"),
        snapshot_bytes=by_the_barrier("dstlSnapshotBytes"),
    )


def _short(progress: object) -> str:
    text = " ".join(str(progress).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
