# SPDX-License-Identifier: Apache-2.0
"""Rows that the Java process sends, without that process."""

import socket
from contextlib import ExitStack, suppress
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from spark_dstl.checkpoint.java.state import StateReader


def test_the_connection_ends_with_its_reader_although_rows_are_left_and_kept() -> None:
    """The process holds a lock while it sends."""
    reader: Any = StateReader.__new__(StateReader)
    reader._gateway = SimpleNamespace(is_running=True)
    batch = pa.RecordBatch.from_pylist([{"n": n} for n in range(10_000)])
    ended = Event()

    def send_endlessly(connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("wb") as file:
            stream = pa.ipc.new_stream(file, batch.schema)
            while True:
                stream.write_batch(batch)
        ended.set()

    def send(port: int, token: str) -> Any:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(token.encode())
        Thread(target=send_endlessly, args=(connection,), daemon=True).start()
        return SimpleNamespace(isEnded=lambda: False, failure=lambda: None)

    with ExitStack() as until_read:
        rows = reader.rows(send, until_read)
        first = rows.read_next_batch()
    assert first == batch
    assert ended.wait(20)
    del rows
