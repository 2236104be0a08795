# SPDX-License-Identifier: Apache-2.0
"""A follower without a Java process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

import spark_dstl
from spark_dstl.checkpoint.following.changes import Position
from spark_dstl.checkpoint.following.follow import Followed
from spark_dstl.checkpoint.reading import read_entry
from spark_dstl.errors import UnreadableState


class Reader:
    """A stand-in for the Java process: a batch has one row, its number."""

    def __init__(self, checkpoint: spark_dstl.Checkpoint) -> None:
        self._checkpoint = checkpoint
        self.opened: list[int] = []
        self.copied: list[str] = []
        self.later_runs: dict[int, str] = {}
        self.entries: list[int] = []
        self.fails = False

    def tool(self, _name: str) -> Any:
        return SimpleNamespace(
            entry=self._entry,
            open=lambda asked, _selection: self.opened.append(asked),
            close=int,
            startAnew=int,
            copy=lambda _selection: SimpleNamespace(
                apply=lambda _entry, batch, _committed: self._copy(f"apply {batch}"), close=int
            ),
            load=lambda _copy, batch, _committed: self._copy(f"load {batch}"),
        )

    def _copy(self, what: str) -> None:
        if self.fails:
            raise UnreadableState("no")
        self.copied.append(what)

    def selection(self, selection: Any) -> Any:
        return selection

    def settings(self, batch: int) -> dict[str, Any]:
        return {"of": batch}

    def batch(self, batch: int, _otherwise: dict[str, Any]) -> int:
        return batch

    def java_errors(self) -> Any:
        return nullcontext()

    def _entry(self, batch: int, length: int) -> Any:
        self.entries.append(batch)
        entry = read_entry(self._checkpoint.storage, batch)
        assert entry is not None
        assert entry.size == length
        self._batch = batch
        index = entry.index
        return SimpleNamespace(
            hasChangelogs=lambda: index is not None and bool(index.segments),
            id=lambda: index and index.entry,
            previous=lambda: index and index.previous,
            run=lambda: self.later_runs.get(batch, index and index.writer.run),
            host=lambda: "host",
        )

    def rows(self, _send: Any, _until_read: Any) -> Any:
        if self.fails:
            raise UnreadableState("no")
        return pa.RecordBatchReader.from_batches(
            pa.schema([("n", pa.int64())]), [pa.RecordBatch.from_pylist([{"n": self._batch}])]
        )


def following(
    checkpoint: spark_dstl.Checkpoint,
    after: int | Position | None = None,
    wait: Callable[[float], None] = lambda _: None,
    clock: Callable[[], float] = lambda: 0.0,
    copies: bool = False,
    starts_anew: bool | None = None,
) -> tuple[Followed, Reader]:
    reader = Reader(checkpoint)
    made: Any = Followed(checkpoint, reader, after, None, copies, starts_anew, wait=wait, clock=clock)  # type: ignore[arg-type]
    return made, reader
