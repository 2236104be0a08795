# SPDX-License-Identifier: Apache-2.0
import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from invoked import dstl, ended, succeeded
from served import until
from written_checkpoint import WrittenCheckpoint

import spark_dstl
from spark_dstl.checkpoint import pins
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.errors import CannotPin, CheckpointNotFound, DstlError, PinTooLate, UnreadableStorage


def test_a_pin_names_its_batch_and_its_time_and_has_a_copy_of_offsets(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        made = pins.create_pin(checkpoint, 2, timedelta(hours=2))
        assert written.pins == [made.name]
        assert made.name.startswith("2-7200-")
        assert (written.root / "offsets/2").read_bytes() == pins.pinned_offsets(checkpoint.storage, 2)
        assert pins.pinned_offsets(checkpoint.storage, 3) is None
        (row,) = checkpoint.pins().to_pylist()
        assert (row["pin"], row["batch"], row["lasts_seconds"]) == (made.name, 2, 7200)
        assert row["ends_at"] - row["pinned_at"] == timedelta(hours=2)
        assert pins.end_pin(checkpoint, made.name)
        assert not pins.end_pin(checkpoint, made.name)
        assert written.pins == []


@pytest.mark.parametrize("cut", [0, 7, 60])
def test_a_pin_that_was_killed_during_its_write_does_not_hide_the_copy_in_another(
    written: WrittenCheckpoint, cut: int
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        made = pins.create_pin(checkpoint, 2, timedelta(hours=2))
        whole = (written.root / made.object_name).read_bytes()
        (written.root / "dstl/epochs/2-1-00000000-0000-4000-8000-000000000000.pin").write_bytes(whole[:cut])
        assert pins.pinned_offsets(checkpoint.storage, 2) == (written.root / "offsets/2").read_bytes()


def test_a_batch_that_spark_does_not_retain_cannot_be_pinned(written: WrittenCheckpoint) -> None:
    (written.root / "offsets/1").unlink()
    with spark_dstl.open(str(written.root)) as checkpoint:
        with pytest.raises(PinTooLate, match=r"batch 1 of .* cannot be pinned"):
            checkpoint.pin(1)
        with pytest.raises(CheckpointNotFound, match="no commit entry of batch 9"):
            checkpoint.pin(9)
    assert written.pins == []


def test_a_pin_that_comes_too_late_is_deleted(written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query purges the batch between the read of its offsets and the creation of the pin."""
    create = Storage.create

    def after_a_purge(self: Storage, name: str, content: bytes) -> None:
        (written.root / "offsets/1").unlink()
        create(self, name, content)

    monkeypatch.setattr(Storage, "create", after_a_purge)
    with spark_dstl.open(str(written.root)) as checkpoint, pytest.raises(PinTooLate):
        checkpoint.pin(1)
    assert written.pins == []


@pytest.mark.parametrize("failure", [UnreadableStorage("no answer"), KeyboardInterrupt()])
def test_a_pin_of_which_it_is_unknown_whether_it_holds_is_deleted(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def failed(_self: Storage, _name: str) -> int:
        raise failure

    monkeypatch.setattr(Storage, "size", failed)
    with spark_dstl.open(str(written.root)) as checkpoint, pytest.raises(type(failure)):
        checkpoint.pin(2)
    assert written.pins == []


def test_a_pin_that_another_ends_at_once_is_reported_as_ended(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Storage.create

    def before_unpin(self: Storage, name: str, content: bytes) -> None:
        create(self, name, content)
        assert self.delete(name)

    monkeypatch.setattr(Storage, "create", before_unpin)
    told = ended(1, "pin", written.root, "--batch", "2")
    assert "of batch 2 of" in told.output
    assert "was ended by `dstl unpin`" in told.output


def test_a_renewed_pin_is_ended_if_another_has_ended_the_one_before_meanwhile(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query may delete what the batch needs, or a rollback the batch."""
    with spark_dstl.open(str(written.root)) as checkpoint, checkpoint.pin(2) as held:
        create = Storage.create

        def after_unpin(self: Storage, name: str, content: bytes) -> None:
            succeeded("unpin", written.root, "--all")
            create(self, name, content)

        monkeypatch.setattr(Storage, "create", after_unpin)
        with pytest.raises(PinTooLate, match="was ended by"):
            held.renew()
        assert written.pins == []


def test_a_held_pin_is_renewed_moved_and_ended(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint, checkpoint.pin(1, timedelta(hours=1)) as held:
        (first,) = written.pins
        (written.root / "offsets/1").unlink()
        held.renew()
        (second,) = written.pins
        assert second != first
        assert second.startswith("1-3600-")
        assert pins.pinned_offsets(checkpoint.storage, 1)
        held.move(3)
        (third,) = written.pins
        assert third.startswith("3-3600-")
        assert held.batch == 3
    assert written.pins == []
    held.renew()
    held.end()
    assert written.pins == []


def test_a_pin_that_another_has_ended_is_not_renewed(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint, checkpoint.pin(1) as held:
        succeeded("unpin", written.root, "--all")
        with pytest.raises(PinTooLate, match="was ended by"):
            held.renew()


class Turns:
    """An event that lets something happen before each turn of a loop that waits for it, and ends the loop after."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = iter(steps)

    def wait(self, seconds: float) -> bool:
        self.seconds = seconds
        step = next(self._steps, None)
        if step is not None:
            step()
        return step is None

    def is_set(self) -> bool:
        return False


def test_a_long_pin_is_renewed_before_its_query_ends_it(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        spark_dstl.open(str(written.root)) as checkpoint,
        checkpoint.pin(1, timedelta(days=4)) as held,
        monkeypatch.context() as patch,
    ):
        turns = Turns()
        patch.setattr(held, "_ended", turns)
        held._keep_renewing()
        assert turns.seconds <= 600


def test_a_reader_whose_pin_another_has_ended_reports_it_once_and_renews_the_next_one(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[list[str]] = []

    def look() -> None:
        seen.append(written.pins)

    with spark_dstl.open(str(written.root)) as checkpoint, checkpoint.pin(1) as held:
        (first,) = written.pins
        unpin = partial(dstl, "unpin", written.root, "--all")
        with monkeypatch.context() as patch:
            patch.setattr(held, "_ended", Turns(unpin, look, partial(held.move, 3), look))
            held._keep_renewing()
        assert [len(pins) for pins in seen] == [0, 1]
        assert written.pins != seen[1], "it was not renewed"
    (warning,) = caplog.messages
    assert f"the pin {first} of batch 1 of {written.root} was ended by `dstl unpin`" in warning
    assert "Reads continue without a pin; a follower pins the batch that it reaches next" in warning


def test_a_pin_that_moves_after_another_has_ended_it_reports_that(
    written: WrittenCheckpoint, caplog: pytest.LogCaptureFixture
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint, checkpoint.pin(1) as held:
        (first,) = written.pins
        dstl("unpin", written.root, "--all")
        held.move(3)
        assert len(written.pins) == 1
        held.move(2)
    (warning,) = caplog.messages
    assert f"the pin {first} of batch 1 " in warning
    assert warning.endswith("Batch 3 is pinned instead")


def test_a_moved_pin_is_the_newer_one_also_if_the_older_cannot_be_ended(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise UnreadableStorage("permission denied")

    with spark_dstl.open(str(written.root)) as checkpoint, checkpoint.pin(1) as held:
        with monkeypatch.context() as patch:
            patch.setattr(Storage, "delete", refused)
            with pytest.raises(UnreadableStorage):
                held.move(2)
        assert held.batch == 2


def test_an_abandoned_pin_is_ended_by_its_own_thread(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        checkpoint.pin(1, timedelta(seconds=1)).abandon()
        until(lambda: not written.pins, 20)


def test_without_permission_reads_go_without_a_pin(written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise UnreadableStorage("permission denied")

    with spark_dstl.open(str(written.root)) as checkpoint:
        pin = pins.pin_if_possible(checkpoint, 2)
        assert pin is not None
        assert len(written.pins) == 1
        pin.end()
        monkeypatch.setattr(Storage, "create", refused)
        assert pins.pin_if_possible(checkpoint, 2) is None
        assert written.pins == []
        with pytest.raises(UnreadableStorage):
            checkpoint.pin(2)


def test_a_pin_is_no_sign_of_a_running_query(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        before = activity.written(checkpoint)
        with checkpoint.pin():
            assert activity.written(checkpoint) == before


def test_verify_counts_a_pin_as_no_damage(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint, checkpoint.pin():
        found = checkpoint.verify(deep=True)
        assert not found.is_damaged
        assert found.leftover_bytes == 0


def test_the_commands_pin_list_and_unpin(written: WrittenCheckpoint) -> None:
    result = succeeded("pin", written.root, "--batch", "2", "--for", "2h")
    (name,) = written.pins
    assert "Batch 2 is pinned until" in result.output
    assert f"dstl unpin {written.root} {name}" in result.output
    newest = json.loads(dstl("pin", written.root, "--output", "json").output)
    assert (newest["batch"], newest["lasts_seconds"]) == (3, 3600)
    assert f"{name}" in dstl("ls", written.root, "pins").output
    assert "2, of batch 2 and later; the last ends" in dstl("show", written.root).output
    assert "1 pins ended" in dstl("unpin", written.root, "--batch", "3").output
    assert "1 pins ended" in dstl("unpin", written.root, name).output
    assert "There was no such pin" in dstl("unpin", written.root, name).output
    assert "pins" not in dstl("show", written.root).output
    assert ["pins.maxDuration" in dstl("pin", written.root, "--for", time).output for time in ("1d", "25h")] == [
        False,
        True,
    ]


@pytest.mark.parametrize("wrong", ["0s", "-1h", "soon", "500ms", "36501d", "10000000000d"])
def test_a_wrong_time_is_refused(written: WrittenCheckpoint, wrong: str) -> None:
    assert "is not a duration of a second or more" in ended(2, "pin", written.root, "--for", wrong).output


def test_unpin_needs_one_choice_and_the_name_of_a_pin(written: WrittenCheckpoint) -> None:
    ended(2, "unpin", written.root)
    ended(2, "unpin", written.root, "--all", "--batch", "3")
    assert "is not the name of a pin" in ended(1, "unpin", written.root, "../../commits/3").output
    assert (written.root / "commits/3").exists()
    with spark_dstl.open(str(written.root)) as checkpoint, pytest.raises(DstlError):
        pins.end_pin(checkpoint, "3")


def test_a_checkpoint_of_stock_spark_takes_no_pins(written: WrittenCheckpoint) -> None:
    for claim in (written.root / "dstl/epochs").iterdir():
        claim.unlink()
    with spark_dstl.open(str(written.root)) as checkpoint:
        with pytest.raises(CannotPin, match="stock Spark ignores pins"):
            checkpoint.pin()
        assert pins.pin_if_possible(checkpoint, 3) is None
        assert written.pins == []
