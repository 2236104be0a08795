# SPDX-License-Identifier: Apache-2.0
"""Rows that the Java process sends, without that process."""

import gc
import socket
from contextlib import ExitStack, suppress
from datetime import timedelta
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from served import until
from written_checkpoint import WrittenCheckpoint

import spark_dstl
from spark_dstl.checkpoint import pins
from spark_dstl.checkpoint.access import CheckpointAccess
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


BATCH = pa.RecordBatch.from_pylist([{"n": n} for n in range(10_000)])


class Sender:
    """Sends the batch, once or endlessly, as the process does."""

    def __init__(self, *, endlessly: bool) -> None:
        self._endlessly = endlessly
        self.ended = Event()

    def __call__(self, port: int, token: str) -> Any:
        Thread(target=self._send, args=(connected(port, token.encode()),), daemon=True).start()
        return sender(has_ended=False)

    def _send(self, connection: socket.socket) -> None:
        with (
            suppress(OSError),
            connection,
            connection.makefile("wb") as file,
            pa.ipc.new_stream(file, BATCH.schema) as stream,
        ):
            stream.write_batch(BATCH)
            while self._endlessly:
                stream.write_batch(BATCH)
        self.ended.set()


class ReaderWithoutAProcess(StateReader):
    """Reads rows of `sender`."""

    def __init__(self, checkpoint: CheckpointAccess, sender: Sender) -> None:
        self._sender = sender
        gateway: Any = SimpleNamespace(is_running=True)
        super().__init__(checkpoint, gateway)

    def tool(self, _name: str, *_others: Any) -> Any:
        return SimpleNamespace(state=lambda _batch, _selection, port, token: self._sender(port, token))

    def batch(self, number: int, *_: Any) -> Any:
        return number

    def selection(self, *_: Any) -> Any:
        return None


def test_the_connection_ends_with_its_reader_although_rows_are_left_and_kept() -> None:
    """The process holds a lock while it sends."""
    sender = Sender(endlessly=True)
    with ExitStack() as until_read:
        rows = without_a_process().rows(sender, until_read)
        first = rows.read_next_batch()
    assert first == BATCH
    assert sender.ended.wait(20)
    del rows


def test_a_finished_read_leaves_nothing_in_memory(written: WrittenCheckpoint) -> None:
    def stacks() -> int:
        gc.collect()
        return sum(isinstance(one, ExitStack) for one in gc.get_objects())

    with spark_dstl.open(str(written.root)) as checkpoint:
        reader = ReaderWithoutAProcess(checkpoint, Sender(endlessly=False))
        before = stacks()
        for _ in range(3):
            assert reader.read("state", [2], None).read_all().to_batches() == [BATCH]
            assert not written.pins
        assert stacks() == before


@pytest.mark.parametrize("batches", [0, 1])
def test_a_dropped_read_ends_its_connection_and_its_pin(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    monkeypatch.setattr(pins, "RENEWED", timedelta(seconds=1))
    with spark_dstl.open(str(written.root)) as checkpoint:
        sender = Sender(endlessly=True)
        rows = ReaderWithoutAProcess(checkpoint, sender).read("state", [2], None)
        for _ in range(batches):
            rows.read_next_batch()
        assert written.pins
        del rows
        assert sender.ended.wait(20)
        until(lambda: not written.pins, 20)


def test_the_end_of_the_reader_ends_the_pins_of_all_its_reads(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        sender = Sender(endlessly=True)
        reader = ReaderWithoutAProcess(checkpoint, sender)
        kept = [reader.read("state", [batch], None) for batch in (1, 2)]
        assert len(written.pins) == len(kept)
        reader.close()
        assert not written.pins
        assert sender.ended.wait(20)


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


@pytest.mark.parametrize("batches", [0, 1])
def test_rows_that_are_cut_off_are_an_error_of_the_process(batches: int) -> None:
    """A process that was killed may seem to run for a moment."""
    rest = pa.BufferOutputStream()
    with pa.ipc.new_stream(rest, BATCH.schema) as stream:
        for _ in range(batches):
            stream.write_batch(BATCH)

    def send(port: int, token: str) -> Any:
        content = rest.getvalue().to_pybytes()
        connected(port, token.encode() + content[: len(content) // 2 if batches else 20]).close()
        return sender(has_ended=False)

    with pytest.raises(JvmFailed, match="the rows of the process that reads state are cut off"):
        without_a_process().rows(send, ExitStack()).read_all()


def test_a_process_that_ends_without_rows_is_an_error_although_others_connect() -> None:
    others = ExitStack()

    def send(port: int, _token: str) -> Any:
        others.enter_context(connected(port, b""))
        return sender(has_ended=True)

    with others, pytest.raises(JvmFailed, match="the process that reads state sent nothing"):
        without_a_process().rows(send, ExitStack())
