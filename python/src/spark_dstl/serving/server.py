# SPDX-License-Identifier: Apache-2.0
"""An Arrow Flight server with the local copy of a follower: `get`, `scan`, `changes` and `describe`."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import flight

from spark_dstl.checkpoint.checkpoint import Checkpoint
from spark_dstl.checkpoint.following.changes import ChangedBatch
from spark_dstl.errors import (
    DstlError,
    HistoryChanged,
    InvalidKey,
    InvalidRequest,
    JvmFailed,
    ResultTooLarge,
    UnreadableState,
    UnreadableStorage,
)
from spark_dstl.serving.metrics import Metrics
from spark_dstl.serving.reads import OpenReads
from spark_dstl.serving.requests import Request, parse

_logger = logging.getLogger(__name__)

# How long storage may answer nothing until the server ends, and the pause after each error.
_PATIENCE = timedelta(minutes=5)
_PAUSE = timedelta(seconds=5)
# How long clients may read on when the server ends.
_SHUTDOWN = timedelta(seconds=5)
_CLIENT_ERRORS = (InvalidKey, InvalidRequest, ResultTooLarge, UnreadableState, HistoryChanged)


@dataclass(frozen=True)
class Limits:
    """What clients may take."""

    rows: int = 1_000_000
    """Rows of a scan."""
    bytes: int = 256 * 1024 * 1024
    """Bytes of a scan, in memory."""
    open_reads: int = 8
    """Scans and reads of changes at a time."""
    idle: timedelta = timedelta(seconds=60)
    """How long a read of changes waits for the next batch, and any read for the client that takes a batch of rows."""


class _Ended(Exception):
    """A wait for the next batch has ended."""


class StateServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves one checkpoint. It listens once it is made; `run` follows the query, and `stop` ends both."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        location: str,
        token: str | None = None,
        limits: Limits = Limits(),
        certificates: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        """Load the local copy, and listen. With a `token` each call has it, as `authorization: Bearer`."""
        self._checkpoint = checkpoint
        self._limits = limits
        self._stopping = threading.Event()
        self._reads = OpenReads(limits.open_reads, limits.idle.total_seconds())
        self.followed = checkpoint.follow(copies=True, wait=self._wait)
        # When storage has last answered the follower.
        self._answered = time.monotonic()
        self.metrics = Metrics(self._gauges)
        try:
            middleware = {} if token is None else {"token": _TokenChecks(token)}
            super().__init__(location, middleware=middleware, tls_certificates=certificates)
        except BaseException:
            self.followed.close()
            raise

    @property
    def batch(self) -> int:
        """The newest batch of the local copy."""
        return self.followed.position.batch

    def run(self) -> None:
        """Apply each batch as it is committed, until `stop` is called. Raises what ends that."""
        while not self._stopping.is_set():
            try:
                self._follow()
                return
            except _Ended:
                return
            except UnreadableStorage as error:
                if time.monotonic() - self._answered > _PATIENCE.total_seconds():
                    raise
                _logger.warning("%s. The server keeps its copy, and asks again", error)
                self._stopping.wait(_PAUSE.total_seconds())

    def stop(self) -> None:
        """End `run` and all reads, from any thread."""
        self._stopping.set()

    def close(self) -> None:
        """End the server and its pins, after `run` has ended."""
        self.stop()
        # It waits for clients, and those that have stalled do not read to the end.
        ending = threading.Thread(target=self.shutdown, name="dstl-shutdown", daemon=True)
        ending.start()
        ending.join(_SHUTDOWN.total_seconds())
        self._reads.end_stalled(0)
        self.followed.close()

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """Answer a request."""
        command, outcome = "unknown", "done"
        try:
            request = parse(ticket.ticket)
            command = request.command
            if command == "changes":
                return self._changes(context, request)
            if command == "scan":
                return self._scan(request)
            table = self._table(request)
            self.metrics.sent(command, table.num_rows)
            return flight.RecordBatchStream(table)
        except _CLIENT_ERRORS as error:
            outcome = type(error).__name__
            # INVALID_ARGUMENT, which no error of Flight is. pyarrow sends the traceback to the client, without a cause.
            raise pa.ArrowInvalid(str(error)) from None
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            # The changes are read later.
            if command != "changes":
                self.metrics.ended(command, outcome)

    def _table(self, request: Request) -> pa.Table:
        if request.command == "describe":
            return pa.Table.from_pylist(self.followed.tables())
        return self.followed.local_copy().found(
            request.keys, request.get("operator", 0), request.get("store", "default"), request.get("column_family")
        )

    def _scan(self, request: Request) -> flight.FlightDataStream:
        """Return the rows; the read is open until the client has taken them."""

        def rows() -> Iterator[Any]:
            with self._reads.begin() as read:
                table = self.followed.table(request.selection, self._limits.rows, self._limits.bytes)
                self.metrics.sent("scan", table.num_rows)
                schema, left = table.schema, deque(table.to_batches())
                del table
                read.close = left.clear
                with self._reads.sending(read):
                    yield schema
                while left:
                    with self._reads.sending(read):
                        yield left.popleft()

        sent = rows()
        return flight.GeneratorStream(next(sent), sent)

    def _changes(self, context: flight.ServerCallContext, request: Request) -> flight.FlightDataStream:
        """Return the changes of batches: the first is waited for, because it has the schema."""
        rows = self._changed(context, request)
        first = next(rows, None)
        if first is None:
            return flight.RecordBatchStream(pa.Table.from_pylist([], pa.schema([("batch", pa.int64())])))
        return flight.GeneratorStream(first.schema, chain([first], rows))

    def _changed(self, context: flight.ServerCallContext, request: Request) -> Iterator[pa.RecordBatch]:
        last = time.monotonic()
        idle = self._limits.idle.total_seconds()
        outcome = "done"
        schema = None

        def is_over() -> bool:
            return bool(context.is_cancelled()) or time.monotonic() - last > idle

        try:
            with self._reads.begin() as read:
                followed = self._checkpoint.follow(
                    request.get("after"), request.selection, wait=self._wait_unless(is_over)
                )
                read.close = followed.close
                batches = followed.changes(request.get("until"), request.get("waits", True))
                while (batch := _next(batches)) is not None:
                    rows = batch.rows()
                    schema = schema or rows.schema
                    if rows.schema != schema:
                        raise pa.ArrowInvalid("the schema of the state has changed: ask again, after the last batch")
                    self.metrics.sent("changes", batch.changes.num_rows)
                    with self._reads.sending(read):
                        yield rows
                    last = time.monotonic()
        except DstlError as error:
            outcome = type(error).__name__
            raise pa.ArrowInvalid(str(error)) from None
        except Exception as error:
            outcome = type(error).__name__
            raise
        finally:
            self.metrics.ended("changes", outcome)

    def _follow(self) -> None:
        for _ in self.followed.batches():
            self._answered = time.monotonic()
            self._reads.end_stalled()
            if self._stopping.is_set():
                return

    def _wait(self, seconds: float) -> None:
        """Wait for the next batch, which storage has answered is not there."""
        self._answered = time.monotonic()
        self._wait_unless(lambda: False)(seconds)

    def _wait_unless(self, is_over: Callable[[], bool]) -> Callable[[float], None]:
        def wait(seconds: float) -> None:
            if self._stopping.wait(seconds) or is_over():
                raise _Ended
            java = self._checkpoint.gateway()
            if not java.is_running:
                raise JvmFailed(f"the Java process that has the copy of the state has ended: {java.last_words()}")
            self._reads.end_stalled()

        return wait

    def _gauges(self) -> dict[str, float | None]:
        age = self.followed.age
        return {
            "batch": self.batch,
            "staleness_seconds": None if age is None else age.total_seconds(),
            "starts": self.followed.starts,
            "open_reads": self._reads.count,
        }


def _next(batches: Iterator[ChangedBatch]) -> ChangedBatch | None:
    try:
        return next(batches, None)
    except _Ended:
        return None


class _TokenChecks(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses calls without the token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: dict[str, list[Any]]) -> None:  # noqa: ARG002
        """Check a call, in a time that does not depend on how much of the token is right."""
        given = [value for name, values in headers.items() if name.lower() == "authorization" for value in values]
        sent = given[0] if given else ""
        if not secrets.compare_digest(sent if isinstance(sent, bytes) else sent.encode(), self._expected):
            raise flight.FlightUnauthenticatedError("send the server's token, as authorization: Bearer TOKEN")
