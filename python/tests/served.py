# SPDX-License-Identifier: Apache-2.0
"""A server of a checkpoint whose follower is a stand-in, without a Java process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyarrow import flight

from spark_dstl.errors import ResultTooLarge
from spark_dstl.serving.server import Limits, StateServer


class Follower:
    """Has the batches of its checkpoint, one row each, and waits for further ones."""

    starts = 1
    age = timedelta(seconds=1)

    def __init__(self, checkpoint: Checkpoint, wait: Callable[[float], None]) -> None:
        self._checkpoint = checkpoint
        self._wait = wait
        self.position = SimpleNamespace(batch=0)
        self.is_closed = False

    def batches(self) -> Iterator[Any]:
        yield self.position
        while True:
            self._wait(0.01)

    def changes(self, _until: int | None, waits: bool) -> Iterator[Any]:
        for number in range(self._checkpoint.batches):
            rows = pa.RecordBatch.from_pydict({"batch": [number], "content": ["a" * self._checkpoint.size]})
            yield SimpleNamespace(batch=number, changes=rows, rows=lambda rows=rows: rows)
        while waits:
            self._wait(0.01)

    def table(self, _selection: Any, rows: int, size: int) -> pa.Table:
        if rows < 2 or size < 100:
            raise ResultTooLarge(f"more than {rows} rows or {size} bytes")
        return pa.Table.from_batches([one.changes for one in self.changes(None, False)])

    def tables(self) -> list[dict[str, Any]]:
        return [{"operator": 0}]

    def close(self) -> None:
        self.is_closed = True


class Checkpoint:
    """A checkpoint with so many batches of rows of so many bytes."""

    def __init__(self, batches: int = 1, size: int = 10) -> None:
        self.batches = batches
        self.size = size
        self.followers: list[Follower] = []
        self.java = SimpleNamespace(is_running=True, last_words=lambda: "out of memory")

    def gateway(self) -> Any:
        return self.java

    def follow(self, _after: Any = None, _selection: Any = None, copies: bool = False, *, wait: Any) -> Any:
        assert copies == (not self.followers)
        self.followers.append(Follower(self, wait))
        return self.followers[-1]


class Client:
    """Asks a server."""

    def __init__(self, client: flight.FlightClient) -> None:
        self._client = client

    def read(self, command: str, **fields: Any) -> flight.FlightStreamReader:
        return self.asked(json.dumps({"command": command, **fields}).encode())

    def asked(self, ticket: bytes, **headers: str) -> flight.FlightStreamReader:
        sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        return self._client.do_get(flight.Ticket(ticket), flight.FlightCallOptions(headers=sent))


@contextmanager
def served(
    checkpoint: Any, limits: Limits | None = None, token: str | None = None
) -> Iterator[tuple[StateServer, Client]]:
    server = StateServer(checkpoint, "grpc://127.0.0.1:0", token, limits or Limits())
    running = threading.Thread(target=server.run)
    running.start()
    try:
        with flight.connect(f"grpc://127.0.0.1:{server.port}") as client:
            yield server, Client(client)
    finally:
        server.stop()
        running.join(10)
        server.close()


def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until something holds."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.01)
