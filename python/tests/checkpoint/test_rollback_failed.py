# SPDX-License-Identifier: Apache-2.0
"""A rollback whose deletions fail, or during which executors of the stopped query still write."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from invoked import dstl, succeeded
from repartitioned_checkpoint import MOVED, repartitioned
from verified import verified
from written_checkpoint import WrittenCheckpoint, after_each_deletion, aged, zip_of

import spark_dstl
from spark_dstl.checkpoint.changing import rollback
from spark_dstl.checkpoint.repartition.entries import is_lock, lock_of
from spark_dstl.checkpoint.sparkfiles import STOCKS
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.commands.changing.rollback import _lines
from spark_dstl.errors import QuerySeemsToRun, UnreadableStorage


def test_a_failed_deletion_says_what_was_deleted_and_that_it_can_be_repeated(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(1)
        assert planned.objects == ["commits/3", "offsets/3", "commits/2", "offsets/2"]
        delete = checkpoint.storage.delete

        def refused(name: str) -> bool:
            if name == "commits/2":
                raise UnreadableStorage("commits/2 could not be deleted")
            return delete(name)

        monkeypatch.setattr(checkpoint.storage, "delete", refused)
        with pytest.raises(UnreadableStorage, match=r"deleted[.] 2 of 4 objects are deleted, .* roll back again"):
            checkpoint.apply_rollback(planned, stopped=True)
        monkeypatch.setattr(checkpoint.storage, "delete", delete)
        assert checkpoint.apply_rollback(checkpoint.plan_rollback(1), stopped=True).deleted == 2


@pytest.mark.parametrize(("during", "deleted"), [("the look", 0), ("commits/2", 2)])
@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_says_what_was_deleted_and_what_to_run_next(
    written: WrittenCheckpoint,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    during: str,
    deleted: int,
    signal: type[BaseException],
) -> None:
    aged(written.root)
    delete = Storage.delete

    def interrupt(storage: Storage, name: str) -> bool:
        if name == during:
            raise signal
        return delete(storage, name)

    def look(_seconds: float) -> None:
        if during == "the look":
            raise signal

    monkeypatch.setattr(Storage, "delete", interrupt)
    with spark_dstl.open(str(written.root)) as checkpoint, pytest.raises(signal):
        rollback.apply_rollback(checkpoint, checkpoint.plan_rollback(1), wait=look)
    assert caplog.messages == [
        f"The rollback is interrupted: {deleted} of 4 objects are deleted, the newest batches first. The checkpoint "
        f"still starts; to delete the rest, roll back again: dstl rollback {written.root} --to 1 --apply"
    ]


def test_of_two_rollbacks_the_later_one_names_the_other(written: WrittenCheckpoint) -> None:
    def other(_seconds: float) -> None:
        with spark_dstl.open(str(written.root)) as checkpoint:
            rollback.apply_rollback(checkpoint, checkpoint.plan_rollback(2), stopped=True)

    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(1)
        with pytest.raises(QuerySeemsToRun, match=r"^a rollback runs on .* Let it end, and begin again"):
            rollback.apply_rollback(checkpoint, planned, stopped=True, wait=other)
        assert (written.root / "commits/2").exists()
        with pytest.raises(QuerySeemsToRun, match=r"newest batch is 2 and was 3[.] A rollback has begun"):
            checkpoint.apply_rollback(planned, stopped=True)


def test_a_rollback_says_that_another_one_goes_on_to_an_earlier_batch(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned, other = checkpoint.plan_rollback(2), checkpoint.plan_rollback(1)
        delete = checkpoint.storage.delete

        def both(name: str) -> bool:
            monkeypatch.setattr(checkpoint.storage, "delete", delete)
            checkpoint.apply_rollback(other, stopped=True)
            return delete(name)

        monkeypatch.setattr(checkpoint.storage, "delete", both)
        with pytest.raises(QuerySeemsToRun, match=r"commits/2 of .* was deleted meanwhile: another rollback continues"):
            checkpoint.apply_rollback(planned, stopped=True)


def test_a_rollback_refuses_while_a_repartition_writes_below_its_lock(written: WrittenCheckpoint) -> None:
    """The snapshots that it writes after the rollback would be the state of later batches."""
    (written.root / "offsets/4").write_bytes(lock_of(str(written.root), 3))
    store = written.root / "state/0/0"
    store.mkdir(parents=True, exist_ok=True)

    def write(_seconds: float) -> None:
        (store / "5.zip").write_bytes(zip_of({}))

    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(2)
        with pytest.raises(QuerySeemsToRun, match=r"dstl repartition runs on .*: state/0/0/5.zip changed while"):
            rollback.apply_rollback(checkpoint, planned, stopped=True, wait=write)
    assert (written.root / "offsets/4").exists()
    (store / "5.zip").unlink()
    succeeded("rollback", written.root, "--to", 2, "--apply", "--stopped")


def test_a_batch_that_a_query_begins_during_the_rollback_is_named(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(1)
        delete = checkpoint.storage.delete

        def begun(name: str) -> bool:
            written.offsets(4)
            return delete(name)

        monkeypatch.setattr(checkpoint.storage, "delete", begun)
        with pytest.raises(QuerySeemsToRun, match=r"offsets/4 of .* was written while .*: a query runs on it. Stop it"):
            checkpoint.apply_rollback(planned, stopped=True)


def test_snapshots_that_executors_write_during_the_rollback_are_deleted(written: WrittenCheckpoint) -> None:
    """Spark's maintenance writes them for some time after the end of a query."""
    store = written.root / "state/0/0"

    def maintenance(_seconds: float) -> None:
        store.mkdir(parents=True, exist_ok=True)
        for version in (2, 3, 5):
            (store / f"{version}.zip").write_bytes(zip_of({}))
            (store / f".{version}.zip.crc").write_bytes(b"crc")

    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(1)
        done = rollback.apply_rollback(checkpoint, planned, stopped=True, wait=maintenance)
    assert done.deleted == len(planned.objects) + 4
    assert list(_lines(replace(done, to=3, newest=3, objects=[]), applied=True)) == [
        f"What was begun after batch 3 is gone: {done.deleted} objects deleted."
    ]
    assert {path.name for path in store.glob("*.zip*")} == {"2.zip", ".2.zip.crc"}


def test_plain_changelogs_of_undone_batches_are_deleted_after_their_entries(tmp_path: Path) -> None:
    """`dstl changes` would return their rows if a batch runs again without changelog checkpointing."""
    stock = WrittenCheckpoint(tmp_path / "q").begin()
    for batch in range(4):
        stock.plain_entry(batch)
    entries = ["commits/3", "offsets/3", "commits/2", "offsets/2"]
    later = [f"state/0/{partition}/{version}.changelog" for partition in (0, 1) for version in (3, 4)]
    later.insert(0, "state/0/0/.3.changelog.crc")
    for name in (later[0], "state/0/0/5_a.changelog"):
        (stock.root / name).write_bytes(b"x")
    aged(stock.root)
    with spark_dstl.open(str(stock.root)) as checkpoint:
        assert checkpoint.plan_rollback(1).objects == entries + later
    planned = dstl("rollback", str(stock.root), "--to", "1").output.splitlines()
    assert planned[:-1] == [
        *(f"would delete {name}" for name in entries),
        "would delete 5 changelogs and checksum files of undone batches in state/",
    ]
    for copy, gone in after_each_deletion(stock.root, entries + later, tmp_path):
        with spark_dstl.open(str(copy)) as checkpoint:
            found = checkpoint.verify()
            committed = max(int(path.name) for path in (copy / "commits").iterdir())
            assert (found.is_damaged, found.newest_undamaged) == (False, committed), gone
            done = checkpoint.apply_rollback(checkpoint.plan_rollback(1), stopped=True)
            assert done.deleted == len(entries + later) - len(gone)
        left = {path.name for path in (copy / "state").rglob("*.changelog*")}
        assert left == {"1.changelog", "2.changelog", "5_a.changelog"}


@pytest.mark.parametrize("commit", [WrittenCheckpoint.batch, WrittenCheckpoint.plain_entry])
def test_a_commit_during_the_rollback_is_an_error_and_keeps_its_changelogs(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch, commit: Callable[[WrittenCheckpoint, int], object]
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(1)
        delete = checkpoint.storage.delete

        def late(name: str) -> bool:
            if name == "offsets/2":
                commit(written, 4)
            return delete(name)

        monkeypatch.setattr(checkpoint.storage, "delete", late)
        with pytest.raises(QuerySeemsToRun, match=r"commits/4 .* was written while"):
            checkpoint.apply_rollback(planned, stopped=True)
    plain = commit is WrittenCheckpoint.plain_entry
    assert (written.root / "state/0/0/5.changelog").exists() == plain


@pytest.mark.parametrize("snapshot", ["4.zip", "4_id.zip"])
def test_an_interrupted_rollback_over_a_repartition_holds_a_lock_if_others_than_ours_read_its_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: str
) -> None:
    """A start would write the offsets again, with snapshots deleted, and stock Spark would repeat the batch before."""
    written = repartitioned(tmp_path / "q", 3, 2, STOCKS)
    for path in list(written.root.glob("state/0/*/4.zip")):
        path.rename(path.with_name(snapshot))
    delete, left = Storage.delete, 0

    def interrupted(storage: Storage, name: str) -> bool:
        nonlocal left
        if left == 0 and not name.startswith("offsets/."):
            raise KeyboardInterrupt
        left -= 1
        return delete(storage, name)

    monkeypatch.setattr(Storage, "delete", interrupted)
    for left in range(1, 12):
        copy = tmp_path / f"after-{left}"
        shutil.copytree(written.root, copy)
        with spark_dstl.open(str(copy)) as checkpoint, suppress(KeyboardInterrupt):
            checkpoint.apply_rollback(checkpoint.plan_rollback(2), stopped=True)
        offsets = copy / f"offsets/{MOVED}"
        snapshots = [(copy / f"state/0/{partition}" / snapshot).exists() for partition in (0, 1)]
        is_whole = all(snapshots) and (copy / f"commits/{MOVED}").exists()
        assert is_whole or not offsets.exists() or is_lock(offsets.read_bytes()), sorted(copy.rglob("*"))
        assert offsets.exists() or not (copy / f"commits/{MOVED}").exists()
        assert offsets.exists() or not any(snapshots), "the lock is deleted last"
        left = 100
        with spark_dstl.open(str(copy)) as checkpoint:
            checkpoint.apply_rollback(checkpoint.plan_rollback(2), stopped=True)
        assert sorted(one.name for one in (copy / "offsets").iterdir()) == ["0", "1", "2"]
        assert not verified(copy).is_damaged
