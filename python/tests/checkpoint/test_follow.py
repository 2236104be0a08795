# SPDX-License-Identifier: Apache-2.0
"""Following without a Java process: order, history and pins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from imitated_java import Reader, following
from written_checkpoint import WrittenCheckpoint, entry_id

import spark_dstl
from spark_dstl.checkpoint.following.changes import Position
from spark_dstl.checkpoint.following.follow import Followed
from spark_dstl.checkpoint.sparkfiles import PARTITIONS
from spark_dstl.checkpoint.storage import Storage, StoredObject
from spark_dstl.errors import CannotPin, CheckpointNotFound, FellBehind, HistoryChanged, UnreadableState

Follow = Callable[..., tuple[Followed, Reader]]


@pytest.fixture
def follow(written: WrittenCheckpoint) -> Iterator[Follow]:
    """Start followers, which end with the test."""
    with spark_dstl.open(str(written.root)) as checkpoint, ExitStack() as started:

        def start(*arguments: Any, **options: Any) -> tuple[Followed, Reader]:
            followed, reader = following(checkpoint, *arguments, **options)
            return started.enter_context(followed), reader

        yield start


def batches(followed: Followed) -> list[int]:
    return [one.batch for one in followed.changes(waits=False)]


def pinned(written: WrittenCheckpoint) -> list[int]:
    return [int(name.split("-")[0]) for name in written.pins]


def test_a_follower_waits_for_the_next_batch(written: WrittenCheckpoint, follow: Follow) -> None:
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            written.batch(4)

    followed, reader = follow(None, wait)
    (one,) = followed.changes(until=4)
    assert (one.batch, one.changes.to_pylist(), one.is_new_run) == (4, [{"n": 4}], False)
    assert len(waits) == 3
    assert reader.opened == [4]
    followed.close()
    assert pinned(written) == []


def test_a_rollback_is_seen_while_a_follower_waits(
    written: WrittenCheckpoint, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries are listed now and then, and not for each look at the next one."""
    followed, _ = follow()
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


def test_a_batch_whose_rows_cannot_be_read_comes_again(follow: Follow) -> None:
    followed, reader = follow(0)
    reader.fails = True
    with pytest.raises(UnreadableState):
        batches(followed)
    reader.fails = False
    assert batches(followed) == [1, 2, 3]


def test_the_pin_moves_with_the_follower(written: WrittenCheckpoint, follow: Follow) -> None:
    now = 0.0
    followed, _ = follow(0, clock=lambda: now)
    assert pinned(written) == [0]
    batches(followed)
    assert pinned(written) == [0], "not with each batch"
    now = 60.0
    written.batch(4)
    assert batches(followed) == [4]
    assert pinned(written) == [4]


def test_a_follower_behind_what_spark_retains_keeps_its_pin(written: WrittenCheckpoint, follow: Follow) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 61
        return now

    followed, _ = follow(0, clock=clock)
    for batch in range(3):
        (written.root / f"offsets/{batch}").unlink()
    assert batches(followed) == [1, 2, 3]
    assert pinned(written) == [3]


def test_a_follower_from_a_batch_that_spark_does_not_retain_pins_the_newest(
    written: WrittenCheckpoint, follow: Follow
) -> None:
    for batch in range(3):
        (written.root / f"offsets/{batch}").unlink()
    followed, _ = follow(0)
    assert pinned(written) == [3]
    assert batches(followed) == [1, 2, 3]


@pytest.mark.parametrize(("more", "is_used"), [(0, True), (1, False)])
def test_settings_that_spark_has_deleted_are_those_of_a_newer_batch_with_as_many_partitions(
    written: WrittenCheckpoint,
    follow: Follow,
    monkeypatch: pytest.MonkeyPatch,
    more: int,
    is_used: bool,
) -> None:
    newer = {"conf": {PARTITIONS: str(written.partitions + more)}}
    asked = []

    def batch(_: Reader, number: int, otherwise: dict[str, Any]) -> int:
        asked.append(otherwise)
        return number

    monkeypatch.setattr(Reader, "settings", lambda _, batch: newer if batch == 3 else {})
    monkeypatch.setattr(Reader, "batch", batch)
    (written.root / "offsets/0").unlink()
    for after in (-1, 0):
        followed, _ = follow(after)
        batches(followed)
    assert asked == [newer if is_used else {}] * 2


def test_a_rollback_ends_following(written: WrittenCheckpoint, follow: Follow) -> None:
    followed, _ = follow(0)
    batches(followed)
    position = followed.position
    (written.root / "commits/3").unlink()
    with pytest.raises(HistoryChanged, match="was rolled back") as raised:
        batches(followed)
    assert raised.value.last == 2
    followed.close()
    with pytest.raises(CheckpointNotFound):
        follow(position)
    assert pinned(written) == []


def test_a_batch_of_another_history_is_not_returned(written: WrittenCheckpoint, follow: Follow) -> None:
    """The query was rolled back to batch 2, and has since committed batch 3 again, and batch 4."""
    followed, _ = follow(0)
    batches(followed)
    written.entry(3, written.changes(3), run=1, previous=entry_id(2))
    written.entry(4, written.changes(4), run=1)
    with pytest.raises(HistoryChanged, match="was rolled back") as raised:
        batches(followed)
    assert raised.value.last == 2


def test_a_batch_after_a_repartition_in_place_of_a_followed_batch_is_not_returned(
    written: WrittenCheckpoint, follow: Follow
) -> None:
    """The query was rolled back to batch 2, and repartitioned with batch 3, whose entry has no id."""
    followed, _ = follow(0)
    batches(followed)
    written.plain_entry(3)
    written.entry(4, written.changes(4), run=1, previous=b"")
    with pytest.raises(HistoryChanged, match="was rolled back") as raised:
        batches(followed)
    assert raised.value.last == 2


def test_a_position_of_another_history_is_refused(written: WrittenCheckpoint, follow: Follow) -> None:
    with pytest.raises(HistoryChanged) as raised:
        follow(Position(2, "00000000-0000-4000-8000-000000000000"))
    assert raised.value.last is None
    assert pinned(written) == []


def test_a_deleted_next_batch_ends_following(written: WrittenCheckpoint, follow: Follow) -> None:
    followed, _ = follow(0)
    for batch in (0, 1):
        (written.root / f"commits/{batch}").unlink()
    deleted = r"batch 1 of .* was deleted before it was followed: .* as of batch 2 or later"
    with pytest.raises(FellBehind, match=deleted):
        batches(followed)


def test_without_a_pin_the_changes_come_as_well(
    written: WrittenCheckpoint, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise CannotPin("no")

    monkeypatch.setattr("spark_dstl.checkpoint.pins.create_pin", refused)
    followed, _ = follow(1)
    assert batches(followed) == [2, 3]
    followed.close()
    assert pinned(written) == []


def test_a_copy_is_loaded_once_for_each_run(written: WrittenCheckpoint, follow: Follow) -> None:
    followed, reader = follow(1, copies=True)
    assert [one.batch for one in followed.batches(waits=False)] == [2, 3]
    written.batch(4)
    reader.later_runs[4] = "another"
    assert batches(followed) == [4]
    assert reader.copied == ["load 1", "apply 2", "apply 3", "load 4"]


def test_a_copy_that_could_not_be_changed_is_loaded_again(follow: Follow) -> None:
    followed, reader = follow(1, copies=True)
    reader.fails = True
    with pytest.raises(UnreadableState):
        list(followed.batches(waits=False))
    reader.fails = False
    assert [one.batch for one in followed.batches(waits=False)] == [2, 3]
    assert reader.copied == ["load 1", "load 2", "apply 3"]


def test_a_copy_is_read_while_a_batch_is_applied(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Java process decides what a read waits for: a key for its store alone."""
    followed, reader = follow(1, copies=True)
    copy = followed.local_copy()
    read = []

    def applies(_what: str) -> None:
        read.append(readers.submit(followed.local_copy).result(5))

    with ThreadPoolExecutor(1) as readers:
        monkeypatch.setattr(reader, "_copy", applies)
        list(followed.batches(waits=False))
    assert read == [copy, copy]


def test_after_an_interrupt_in_the_middle_of_a_batch_the_copy_is_loaded_again(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed, reader = follow(1, copies=True)

    def interrupts(_what: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(reader, "_copy", interrupts)
        with pytest.raises(KeyboardInterrupt):
            list(followed.batches(waits=False))
    followed.local_copy()
    assert reader.copied == ["load 1", "load 1"]


def test_a_copy_from_before_the_first_batch_is_loaded_with_it(follow: Follow) -> None:
    followed, reader = follow(-1, copies=True)
    with pytest.raises(CheckpointNotFound, match=r"no batch of .* was followed yet"):
        followed.table()
    list(followed.batches(waits=False))
    assert reader.copied == ["load 0", "apply 1", "apply 2", "apply 3"]


def test_a_copy_starts_anew_when_it_falls_behind(
    written: WrittenCheckpoint, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    followed, reader = follow(0, copies=True)
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


@pytest.mark.parametrize("copies", [True, False])
def test_a_follower_starts_anew_after_a_batch_that_is_not_in_the_log(
    written: WrittenCheckpoint, follow: Follow, copies: bool
) -> None:
    followed, reader = follow(3, copies=copies, starts_anew=True)
    written.plain_entry(4)
    assert batches(followed) == []
    assert (followed.position, followed.starts) == (Position(4, None), 2)
    written.entry(5, written.changes(5), run=1)
    (one,) = followed.changes(waits=False)
    assert (one.batch, one.is_new_start) == (5, True)
    assert reader.copied == (["load 3", "load 4", "load 5"] if copies else [])


@pytest.mark.parametrize("copies", [True, False])
def test_a_follower_that_does_not_start_anew_says_why(written: WrittenCheckpoint, follow: Follow, copies: bool) -> None:
    followed, _ = follow(3, copies=copies, starts_anew=False)
    written.plain_entry(4)
    with pytest.raises(UnreadableState, match=r"batch 4 of .* dstl repartition, which changes no row: continue after"):
        batches(followed)
    (written.root / "commits/4").unlink()
    written.batch(5)
    with pytest.raises(FellBehind):
        batches(followed)
    assert followed.starts == 1


@pytest.mark.parametrize("copies", [True, False])
def test_a_batch_takes_two_requests(
    written: WrittenCheckpoint,
    follow: Follow,
    monkeypatch: pytest.MonkeyPatch,
    copies: bool,
) -> None:
    """A look, and the entry, which the Java process reads at once; while nothing is new the look alone."""
    requests: list[str] = []
    waits: list[int] = []

    def wait(_: float) -> None:
        waits.append(len(requests))
        if len(waits) == 3:
            written.batch(4)
            # Only the entry is read, and not by the stand-in.
            requests.clear()

    followed, reader = follow(0, wait, copies=copies)
    read = reader._entry

    def entry(batch: int, length: int) -> Any:
        before = len(requests)
        found = read(batch, length)
        requests[before:] = [f"read commits/{batch}"]
        return found

    followed._java.entry = entry
    errors = Storage._errors

    def noted(self: Storage, name: str, done: str) -> Any:
        requests.append(f"{done} {name}")
        return errors(self, name, done)

    monkeypatch.setattr(Storage, "_errors", noted)
    steps = followed.batches() if copies else followed.changes()
    for batch in (1, 2, 3):
        next(steps)
        assert requests == [f"looked at commits/{batch}", f"read commits/{batch}"]
        requests.clear()
    next(steps)
    assert waits == [1, 2, 3], "a look each"
    assert requests == ["looked at commits/4", "read commits/4"]
    assert reader.entries == [1, 2, 3, 4]


def test_a_copy_whose_load_failed_at_a_fresh_start_is_loaded_before_a_batch_is_applied(
    written: WrittenCheckpoint, follow: Follow
) -> None:
    followed, reader = follow(0, copies=True)
    for batch in (0, 1):
        (written.root / f"commits/{batch}").unlink()
    reader.fails = True
    with pytest.raises(UnreadableState):
        list(followed.batches(waits=False))
    reader.fails = False
    written.batch(4)
    assert [one.batch for one in followed.batches(waits=False)] == [4]
    assert reader.copied[-1] == "load 4"


def test_a_copy_starts_anew_after_a_rollback(written: WrittenCheckpoint, follow: Follow) -> None:
    followed, reader = follow(1, copies=True)
    list(followed.batches(waits=False))
    written.entry(3, written.changes(3), run=1, previous=entry_id(2))
    written.entry(4, written.changes(4), run=1)
    assert batches(followed) == []
    assert (followed.position.batch, followed.starts) == (4, 2)
    assert reader.copied == ["load 1", "apply 2", "apply 3", "load 4"]
