# SPDX-License-Identifier: Apache-2.0
"""A listener that keeps the figures of batches."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import weakref
from collections import deque
from pathlib import Path
from threading import Condition
from typing import TYPE_CHECKING
from uuid import UUID

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from spark_dstl.errors import InvalidOption
from spark_dstl.monitoring.history import LONGEST_LINE, table_of, write_parquet
from spark_dstl.monitoring.query_metrics import QueryMetrics

if TYPE_CHECKING:
    import pyarrow as pa

# How long the end of a program waits, at most, for what Spark has to report of queries that have ended.
_EXIT_SECONDS = 10.0


class MetricsListener(StreamingQueryListener):
    """Keeps the figures of the newest batches of all queries of a session, for `spark.streams.addListener`.

    ```python
    listener = spark_dstl.MetricsListener(progress_file="/var/log/clicks.jsonl")
    spark.streams.addListener(listener)
    ```

    It is thread-safe, and works in sessions with a JVM and of Spark Connect. A busy Spark calls listeners late and
    drops events, so the history may have gaps. A query's end does not wait for its listeners: a program that ends
    without `spark.stop()` waits here, for up to ten seconds, for the last batches of queries that have ended.

    `limit` is the number of batches that are kept, the newest. With `progress_file`, the listener also appends the
    whole progress of each batch to that file, one line of JSON each, for `dstl watch` and `dstl report`.

    Raises `InvalidOption` for a limit below 1, and `OSError` if the file cannot be appended to. Spark logs a later
    error of the file, and the query continues.
    """

    def __init__(self, *, limit: int = 10_000, progress_file: str | os.PathLike[str] | None = None) -> None:
        if limit < 1:
            raise InvalidOption(f"limit cannot be {limit}: it must be a whole number, at least 1")
        self._kept: deque[QueryMetrics] = deque(maxlen=limit)
        self._file = None if progress_file is None else Path(progress_file)
        if self._file is not None:
            self._file.open("a").close()
        # Guards all fields; notified when a query has ended.
        self._lock = Condition()
        self._begun: set[UUID] = set()
        # At exit Spark's threads still call this process; they log an error for each event after its end.
        atexit.register(_wait_at_exit, weakref.ref(self))

    @property
    def metrics(self) -> tuple[QueryMetrics, ...]:
        """The kept batches, the oldest first."""
        with self._lock:
            return tuple(self._kept)

    def table(self) -> pa.Table:
        """Return the kept batches as a table, with a column for each field of `QueryMetrics`.

        Raises `MissingPackage` if pyarrow is not installed.
        """
        return table_of(self.metrics)

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a Parquet file at `path`, which `dstl report` reads; replace an existing file.

        Raises `MissingPackage` if pyarrow is not installed, and `OSError` if the file cannot be written.
        """
        write_parquet(self.table(), Path(path))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Note that a query has begun."""
        with self._lock:
            self._begun.add(event.runId)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Keep the figures of a batch."""
        progress = event.progress
        found = QueryMetrics.from_progress(progress)
        with self._lock:
            self._kept.append(found)
            if self._file is not None:
                _append(self._file, f"{' '.join(progress.json.split())}\n".encode())

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing for an idle trigger."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Keep the batches of a query that ends; this is its last event."""
        with self._lock:
            self._begun.discard(event.runId)
            self._lock.notify_all()

    def _await_ended(self, seconds: float) -> None:
        """Wait for the last event of each query that is not active any more, for at most `seconds`."""
        with self._lock:
            begun = set(self._begun)
        session = SparkSession.getActiveSession() if begun else None
        if session is not None:
            active = {UUID(str(query.runId)) for query in session.streams.active}
            with self._lock:
                self._lock.wait_for(lambda: self._begun.isdisjoint(begun - active), seconds)


def _append(path: Path, line: bytes) -> None:
    """Append a line of progress, in place of one that a full disk or the end of a driver has cut off."""
    # Pipes and terminals keep nothing.
    if path.is_file():
        with path.open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            if file.read(1) not in (b"", b"\n"):
                file.seek(max(size - LONGEST_LINE, 0))
                last = file.read().rpartition(b"\n")[2]
                try:
                    json.loads(last)
                    line = b"\n" + line
                except (ValueError, RecursionError):
                    if last.startswith(b"{"):
                        file.truncate(size - len(last))
    # In one request to the system: other drivers may append to the file as well.
    with path.open("ab", buffering=0) as lines:
        while line:
            line = line[lines.write(line) :]


def _wait_at_exit(of: weakref.ref[MetricsListener]) -> None:
    listener = of()
    # Spark may have ended before this process.
    with contextlib.suppress(Exception):
        if listener is not None:
            listener._await_ended(_EXIT_SECONDS)
