# SPDX-License-Identifier: Apache-2.0
"""Rows that the Java process sends, without that process."""

import socket
from contextlib import ExitStack, suppress
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from spark_dstl.checkpoint.java.state import StateReader
from spark_dstl.errors import JvmFailed


def without_a_process() -> Any:
    reader: Any = StateReader.__new__(StateReader)
    reader._gateway = SimpleNamespace(is_running=True)
    return reader


def connected(port: int, sends: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(sends)
    return connection


def sender(*, has_ended: bool) -> Any:
    return SimpleNamespace(isEnded=lambda: has_ended, failure=lambda: None)


def test_the_connection_ends_with_its_reader_although_rows_are_left_and_kept() -> None:
    """The process holds a lock while it sends."""
    reader = without_a_process()
    batch = pa.RecordBatch.from_pylist([{"n": n} for n in range(10_000)])
    ended = Event()

    def send_endlessly(connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("wb") as file:
            stream = pa.ipc.new_stream(file, batch.schema)
            while True:
                stream.write_batch(batch)
        ended.set()

    def send(port: int, token: str) -> Any:
        connection = connected(port, token.encode())
        Thread(target=send_endlessly, args=(connection,), daemon=True).start()
        return sender(has_ended=False)

    with ExitStack() as until_read:
        rows = reader.rows(send, until_read)
        first = rows.read_next_batch()
    assert first == batch
    assert ended.wait(20)
    del rows


def test_rows_come_although_others_connect_before_the_process() -> None:
    batch = pa.RecordBatch.from_pylist([{"n": 1}])
    others = ExitStack()

    def send(port: int, token: str) -> Any:
        for sends in (b"", token[:9].encode(), b"GET / HTTP/1.1\r\n\r\n", b"0" * 9999):
            others.enter_context(connected(port, sends))
        connected(port, b"").close()
        with (
            connected(port, token.encode()) as connection,
            connection.makefile("wb") as file,
            pa.ipc.new_stream(file, batch.schema) as stream,
        ):
            stream.write_batch(batch)
        return sender(has_ended=True)

    with others:
        assert without_a_process().rows(send, ExitStack()).read_all().to_batches() == [batch]


def test_a_process_that_ends_without_rows_is_an_error_although_others_connect() -> None:
    others = ExitStack()

    def send(port: int, _token: str) -> Any:
        others.enter_context(connected(port, b""))
        return sender(has_ended=True)

    with others, pytest.raises(JvmFailed, match="the process that reads state sent nothing"):
        without_a_process().rows(send, ExitStack())
