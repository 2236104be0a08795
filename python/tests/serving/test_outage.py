# SPDX-License-Identifier: Apache-2.0
"""A server whose storage does not answer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from served import Checkpoint, Follower, served, until

from spark_dstl.errors import UnreadableStorage
from spark_dstl.serving.server import StateServer

SERVER = "spark_dstl.serving.server"


def failing(monkeypatch: pytest.MonkeyPatch, failures: list[UnreadableStorage]) -> None:
    """Let a follower raise each of these before it continues."""
    follow = Follower.batches

    def batches(self: Follower) -> Iterator[Any]:
        if failures:
            raise failures.pop()
        yield from follow(self)

    monkeypatch.setattr(Follower, "batches", batches)


def test_storage_that_does_not_answer_is_asked_again_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [UnreadableStorage(f"s3://bucket does not answer: {of}") for of in range(3)]
    failing(monkeypatch, failures)
    monkeypatch.setattr(f"{SERVER}._PAUSE", timedelta(milliseconds=1))
    waits = []
    wait = StateServer._wait

    def waited(self: StateServer, seconds: float) -> None:
        waits.append(seconds)
        wait(self, seconds)

    monkeypatch.setattr(StateServer, "_wait", waited)
    with caplog.at_level(logging.WARNING), served(Checkpoint()) as (_, client):
        until(lambda: bool(waits))
        assert client.read("scan").read_all().num_rows == 1
    assert [one.getMessage().split(".")[0] for one in caplog.records] == [
        f"s3://bucket does not answer: {of}" for of in (2, 1, 0)
    ]


def test_a_stop_ends_a_server_whose_storage_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, [UnreadableStorage("no answer")])
    checkpoint: Any = Checkpoint()
    with closing(StateServer(checkpoint, "grpc://127.0.0.1:0")) as server:
        server.stop()
        server.run()


def test_storage_that_has_not_answered_for_minutes_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [UnreadableStorage("no answer") for _ in range(3)]
    failing(monkeypatch, failures)
    monkeypatch.setattr(f"{SERVER}._PATIENCE", timedelta(seconds=-1))
    checkpoint: Any = Checkpoint()
    with closing(StateServer(checkpoint, "grpc://127.0.0.1:0")) as server:
        with pytest.raises(UnreadableStorage, match="no answer"):
            server.run()
        assert len(failures) == 2
