# SPDX-License-Identifier: Apache-2.0
"""Following without a Java process: order, history and pins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from written_checkpoint import WrittenCheckpoint, entry_id

import spark_dstl
from spark_dstl.checkpoint.follow import Followed, Position
from spark_dstl.checkpoint.reading import read_entry
from spark_dstl.checkpoint.storage import Storage, StoredObject
from spark_dstl.errors import CannotPin, CheckpointNotFound, FellBehind, HistoryChanged, UnreadableState


class Reader:
    """A stand-in for the Java process: a batch has one row, its number."""

    def __init__(self, checkpoint: spark_dstl.Checkpoint) -> None:
        self._checkpoint = checkpoint
        self.opened: list[int] = []
        self.copied: list[str] = []
        self.later_runs: dict[int, str] = {}
        self.fails = False

    def tool(self, _name: str) -> Any:
        return SimpleNamespace(
            entry=self._entry,
            open=lambda asked, _selection: self.opened.append(asked),
            close=int,
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
        entry = read_entry(self._checkpoint.storage, batch)
        assert entry is not None
        assert entry.size == length
        self._batch = batch
        index = entry.index
        return SimpleNamespace(
            hasLog=lambda: index is not None,
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


@pytest.fixture
def checkpoint(written: WrittenCheckpoint) -> Iterator[spark_dstl.Checkpoint]:
    with spark_dstl.open(str(written.root)) as opened:
        yield opened


def following(
    checkpoint: spark_dstl.Checkpoint,
    after: int | Position | None = None,
    wait: Callable[[float], None] = lambda _: None,
    clock: Callable[[], float] = lambda: 0.0,
    copies: bool = False,
) -> tuple[Followed, Reader]:
    reader = Reader(checkpoint)
    return Followed(checkpoint, reader, after, None, copies, wait=wait, clock=clock), reader  # type: ignore[arg-type]


def batches(followed: Followed) -> list[int]:
    return [one.batch for one in followed.changes(waits=False)]


def pinned(written: WrittenCheckpoint) -> list[int]:
    return [int(path.name.split("-")[0]) for path in (written.root / "dstl/epochs").glob("*.pin")]


def test_a_follower_waits_for_the_next_batch(written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint) -> None:
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            written.batch(4)

    followed, reader = following(checkpoint, None, wait)
    (one,) = followed.changes(until=4)
    assert (one.batch, one.changes.to_pylist(), one.is_new_run) == (4, [{"n": 4}], False)
    assert len(waits) == 3
    assert reader.opened == [4]
    followed.close()
    assert pinned(written) == []


def test_a_rollback_is_seen_while_a_follower_waits(
    written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries are listed now and then, and not for each look at the next one."""
    followed, _ = following(checkpoint)
    (written.root / "commits/3").unlink()
    looked = 0
    listed = set()
    look, objects = Storage.look, Storage.objects

    def counted_look(self: Storage, name: str) -> StoredObject | None:
        nonlocal looked
        looked += 1
        return look(self, name)

    def noted_objects(self: Storage, directory: str = "", recursive: bool = False) -> list[StoredObject]:
        listed.add(looked)
        return objects(self, directory, recursive)

    monkeypatch.setattr(Storage, "look", counted_look)
    monkeypatch.setattr(Storage, "objects", noted_objects)
    with pytest.raises(HistoryChanged):
        next(followed.changes())
    assert looked == 40
    assert listed == {40}
    followed.close()


def test_a_batch_whose_rows_cannot_be_read_comes_again(checkpoint: spark_dstl.Checkpoint) -> None:
    followed, reader = following(checkpoint, 0)
    reader.fails = True
    with pytest.raises(UnreadableState):
        batches(followed)
    reader.fails = False
    assert batches(followed) == [1, 2, 3]
    followed.close()


def test_the_pin_moves_with_the_follower(written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint) -> None:
    now = 0.0
    followed, _ = following(checkpoint, 0, clock=lambda: now)
    assert pinned(written) == [0]
    batches(followed)
    assert pinned(written) == [0], "not with each batch"
    now = 60.0
    written.batch(4)
    assert batches(followed) == [4]
    assert pinned(written) == [4]
    followed.close()


def test_a_follower_behind_what_spark_retains_keeps_its_pin(
    written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint
) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 61
        return now

    followed, _ = following(checkpoint, 0, clock=clock)
    for batch in range(3):
        (written.root / f"offsets/{batch}").unlink()
    assert batches(followed) == [1, 2, 3]
    assert pinned(written) == [3]
    followed.close()


def test_a_rollback_ends_following(written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint) -> None:
    followed, _ = following(checkpoint, 0)
    batches(followed)
    position = followed.position
    (written.root / "commits/3").unlink()
    with pytest.raises(HistoryChanged) as raised:
        batches(followed)
    assert raised.value.last == 2
    followed.close()
    with pytest.raises(CheckpointNotFound):
        following(checkpoint, position)
    assert pinned(written) == []


def test_a_batch_of_another_history_is_not_returned(
    written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint
) -> None:
    """The query was rolled back to batch 2, and has since committed batch 3 again, and batch 4."""
    followed, _ = following(checkpoint, 0)
    batches(followed)
    written.entry(3, written.changes(3), run=1, previous=entry_id(2))
    written.entry(4, written.changes(4), run=1)
    with pytest.raises(HistoryChanged) as raised:
        batches(followed)
    assert raised.value.last == 2
    followed.close()


def test_a_position_of_another_history_is_refused(
    written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint
) -> None:
    with pytest.raises(HistoryChanged) as raised:
        following(checkpoint, Position(2, "00000000-0000-4000-8000-000000000000"))
    assert raised.value.last is None
    assert pinned(written) == []


def test_a_deleted_next_batch_ends_following(written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint) -> None:
    followed, _ = following(checkpoint, 0)
    for batch in (0, 1):
        (written.root / f"commits/{batch}").unlink()
    with pytest.raises(FellBehind, match="as of batch 2 or later"):
        batches(followed)
    followed.close()


def test_without_a_pin_the_changes_come_as_well(
    written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise CannotPin("no")

    monkeypatch.setattr("spark_dstl.checkpoint.pins.create_pin", refused)
    followed, _ = following(checkpoint, 1)
    assert batches(followed) == [2, 3]
    followed.close()
    assert pinned(written) == []


def test_a_copy_is_loaded_once_for_each_run(written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint) -> None:
    followed, reader = following(checkpoint, 1, copies=True)
    assert [one.batch for one in followed.batches(waits=False)] == [2, 3]
    written.batch(4)
    reader.later_runs[4] = "another"
    assert batches(followed) == [4]
    assert reader.copied == ["load 1", "apply 2", "apply 3", "load 4"]
    followed.close()


def test_a_copy_that_could_not_be_changed_is_loaded_again(checkpoint: spark_dstl.Checkpoint) -> None:
    followed, reader = following(checkpoint, 1, copies=True)
    reader.fails = True
    with pytest.raises(UnreadableState):
        list(followed.batches(waits=False))
    reader.fails = False
    assert [one.batch for one in followed.batches(waits=False)] == [2, 3]
    assert reader.copied == ["load 1", "load 2", "apply 3"]
    followed.close()


def test_a_copy_from_before_the_first_batch_is_loaded_with_it(checkpoint: spark_dstl.Checkpoint) -> None:
    followed, reader = following(checkpoint, -1, copies=True)
    with pytest.raises(CheckpointNotFound, match=r"no batch of .* was followed yet"):
        followed.table()
    list(followed.batches(waits=False))
    assert reader.copied == ["load 0", "apply 1", "apply 2", "apply 3"]
    followed.close()


def test_a_copy_starts_anew_when_it_falls_behind(
    written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    followed, reader = following(checkpoint, 0, copies=True)
    for batch in (0, 1):
        (written.root / f"commits/{batch}").unlink()
    assert batches(followed) == []
    assert (followed.position.batch, followed.starts) == (3, 2)
    assert reader.copied == ["load 0", "load 3"]
    assert "The follower has started anew after batch 3" in caplog.text
    assert pinned(written) == [3]
    written.batch(4)
    written.batch(5)
    assert [one.is_new_start for one in followed.changes(waits=False)] == [True, False]
    followed.close()


def test_a_copy_starts_anew_after_a_rollback(written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint) -> None:
    followed, reader = following(checkpoint, 1, copies=True)
    list(followed.batches(waits=False))
    written.entry(3, written.changes(3), run=1, previous=entry_id(2))
    written.entry(4, written.changes(4), run=1)
    assert batches(followed) == []
    assert (followed.position.batch, followed.starts) == (4, 2)
    assert reader.copied == ["load 1", "apply 2", "apply 3", "load 4"]
    followed.close()
