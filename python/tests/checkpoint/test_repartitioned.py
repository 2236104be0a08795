# SPDX-License-Identifier: Apache-2.0
"""The tools on a checkpoint with two numbers of partitions in its history, and the commit of a repartition."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from repartitioned_checkpoint import MOVED, Repartitioned, repartitioned
from verified import verified
from written_checkpoint import Listed, after_each_deletion, aged, zip_of

import spark_dstl
from spark_dstl import QuerySeemsToRun, UnreadableStorage
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.format.names import file_of
from spark_dstl.checkpoint.repartition import repartition as module
from spark_dstl.checkpoint.repartition.entries import is_lock
from spark_dstl.checkpoint.sparkfiles import PARTITIONS
from spark_dstl.checkpoint.storage import Storage


@pytest.fixture(autouse=True)
def any_spark_is_new_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "refuse_old_spark", lambda _error: None)


def without_first_batches(root: Path) -> None:
    """Delete the batches before the repartition; retention leaves the entry that fences a run."""
    for batch in range(MOVED):
        (root / f"offsets/{batch}").unlink()
        if batch > 0:
            (root / f"commits/{batch}").unlink()


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2)])
def test_a_batch_needs_the_partitions_of_its_own_number(tmp_path: Path, before: int, after: int) -> None:
    written = repartitioned(tmp_path / "q", before, after)
    found = verified(written.root)
    assert (found.is_damaged, found.lost, found.newest_undamaged) == (False, {}, 5), found.damages


def test_retained_batches_need_no_partition_that_they_do_not_have(tmp_path: Path) -> None:
    written = repartitioned(tmp_path / "q", 3, 2)
    without_first_batches(written.root)
    found = verified(written.root)
    assert (found.is_damaged, found.lost, found.newest_undamaged) == (False, {}, 5), found.damages


def test_a_restart_reads_nothing_of_partitions_that_a_repartition_has_left(tmp_path: Path) -> None:
    written = Repartitioned(tmp_path / "q", partitions=3)
    written.begin().batches(range(MOVED), large=(1,))
    written.repartition(MOVED, 2)
    written.later(MOVED + 1)
    with spark_dstl.open(str(written.root)) as checkpoint:
        found = checkpoint.summary()
    assert (found.stores, found.recovery.changelogs) == (2, 2)


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2)])
def test_an_export_has_the_partitions_of_each_batch(tmp_path: Path, before: int, after: int) -> None:
    written, target = repartitioned(tmp_path / "q", before, after), tmp_path / "target"
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert checkpoint.export(str(target)).batches == [*range(6)]
    found = verified(target)
    assert (found.is_damaged, found.lost, found.newest_undamaged) == (False, {}, 5), found.damages
    # The state of the batches after the repartition is in other partitions.
    without_first_batches(written.root)
    aged(written.root)
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert checkpoint.export(str(tmp_path / "later")).batches == [*range(MOVED, 6)]
    assert not [*tmp_path.glob("later/state/0/2/*.changelog")] or after == 3


def test_of_a_damaged_snapshot_of_a_repartition_the_way_back_is_the_batch_before(tmp_path: Path) -> None:
    written = repartitioned(tmp_path / "q", 2, 3)
    (written.root / f"state/0/2/{MOVED + 1}.zip").unlink()
    found = verified(written.root)
    assert found.is_damaged
    assert (set(found.lost), found.newest_undamaged) == ({3, 4, 5}, 2)
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(2)
        checkpoint.apply_rollback(planned, stopped=True)
    found = verified(written.root)
    assert (found.is_damaged, found.lost, found.newest_undamaged) == (False, {}, 2), found.damages


def test_offsets_that_an_interrupted_repartition_has_not_written_yet_are_no_damage(tmp_path: Path) -> None:
    """The next start has them from the commit entry."""
    written = Repartitioned(tmp_path / "q", partitions=3)
    written.begin().batches(range(MOVED))
    written.repartition(MOVED, 2)
    (written.root / f"offsets/{MOVED}").unlink()
    found = verified(aged(written.root), deep=True)
    assert (found.is_damaged, found.lost, found.newest_undamaged) == (False, {}, MOVED - 1), found.damages
    assert [note.what for note in found.notes if "dstl repartition was interrupted" in note.what]


def test_an_interrupted_rollback_leaves_no_offsets_of_the_new_number_alone(tmp_path: Path) -> None:
    written = repartitioned(tmp_path / "q", 3, 2)
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(2).objects
    for copy, deleted in after_each_deletion(written.root, planned, tmp_path):
        has_entry = (copy / f"commits/{MOVED}").exists()
        # With the offsets alone, Spark would run the batch with the new number on the state of the old one.
        assert has_entry or not (copy / f"offsets/{MOVED}").exists(), deleted
        # The entry decides that the snapshots count.
        assert not has_entry or len([*copy.glob(f"state/0/*/{MOVED + 1}.zip")]) == 2, deleted


def interrupted(root: Path) -> tuple[Repartitioned, Path]:
    """Batches 0 to 2, and a snapshot of version 4 that an interrupted repartition has left."""
    written = Repartitioned(root)
    written.begin().batches(range(3))
    aged(root)
    abandoned = root / "state/0/0/4.zip"
    abandoned.write_bytes(zip_of({}))
    return written, abandoned


def test_snapshots_of_an_interrupted_repartition_are_leftovers_once_the_query_has_gone_on(tmp_path: Path) -> None:
    written, abandoned = interrupted(tmp_path / "q")
    with spark_dstl.open(str(written.root)) as checkpoint:
        # The command may be writing them.
        assert checkpoint.leftovers().objects == []
        # A rollback, which needs all writers stopped, deletes them, so it plans to.
        assert checkpoint.plan_rollback(2).objects == ["state/0/0/4.zip"]
    written.batches(range(3, 6))
    aged(written.root)
    with spark_dstl.open(str(written.root)) as checkpoint:
        found = checkpoint.leftovers()
        assert [one.name for one in found.objects] == ["state/0/0/4.zip"]
        assert "state/0/0/4.zip" in checkpoint.plan_rollback(2).objects
        assert "state/0/0/4.zip" not in checkpoint.plan_rollback(4).objects
        assert checkpoint.delete_leftovers(found, stopped=True).deleted == 1
    assert not abandoned.exists()


@pytest.mark.parametrize("fence", [None, 0, 2])
@pytest.mark.parametrize("listed", [0, 3])
def test_plain_snapshots_that_batches_are_rebuilt_from_are_not_abandoned(
    tmp_path: Path, fence: int | None, listed: int
) -> None:
    """Changes are in the log, and snapshots are files, as on Spark 3.5: they stay, whatever the log says of them."""
    written = Repartitioned(tmp_path / "q")
    written.begin()
    for batch in range(8):
        written.entry(batch, written.changes(batch), listed=Listed(since=batch, plain_up_to=min(listed, batch)))
        written.offsets(batch)
    snapshots = [
        written.root / f"state/0/{partition}/{version}.zip" for partition in (0, 1) for version in {5, 7, listed or 7}
    ]
    for snapshot in snapshots:
        snapshot.parent.mkdir(parents=True, exist_ok=True)
        snapshot.write_bytes(zip_of({}))
    for batch in range(4):
        (written.root / f"offsets/{batch}").unlink()
        if batch != fence:
            (written.root / f"commits/{batch}").unlink()
    aged(written.root)
    found = verified(written.root)
    assert (found.is_damaged, found.lost, found.newest_undamaged) == (False, {}, 7), found.lost
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert checkpoint.leftovers().objects == []


def test_snapshots_of_an_interrupted_repartition_are_not_exported(tmp_path: Path) -> None:
    """Stock Spark would load them."""
    written, abandoned = interrupted(tmp_path / "q")
    written.batches(range(3, 6))
    aged(written.root)
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert checkpoint.export(str(tmp_path / "target")).batches == [*range(6)]
    store = tmp_path / "target/state/0/0"
    assert (store / "4.changelog").exists()
    assert not (store / abandoned.name).exists()


class WrittenStores:
    """Stores that were written, while a query may have committed a batch."""

    meanwhile: Any = None

    def __init__(self, checkpoint: spark_dstl.Checkpoint, *_: object) -> None:
        self._root = Path(checkpoint.path)

    def write(self) -> tuple[dict[int, list[list[str]]], list[Any]]:
        return {}, [0]

    def create(self, name: str, content: bytes) -> bool:
        if self.meanwhile is not None:
            (self._root / name).write_bytes(self.meanwhile(content))
            return False
        with (self._root / name).open("xb") as entry:
            entry.write(content)
        return True


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repartitioned:
    """Batches 0 to 2 in the log, whose stores are written by nothing."""
    checkpoint = Repartitioned(tmp_path / "logged")
    checkpoint.begin().batches(range(MOVED))
    aged(checkpoint.root)
    monkeypatch.setattr(module, "StoreRepartition", WrittenStores)
    monkeypatch.setattr(spark_dstl.Checkpoint, "gateway", lambda _self: None)
    return checkpoint


def apply(checkpoint: Repartitioned) -> module.Repartition:
    with spark_dstl.open(str(checkpoint.root)) as opened:
        return module.repartition(opened, 3, lambda: None, stopped=True)  # type: ignore[arg-type,return-value]


def test_the_commit_entry_of_a_query_that_runs_meanwhile_stays(
    logged: Repartitioned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WrittenStores, "meanwhile", lambda _self, _content: b'v1\n{"nextBatchWatermarkMs":9}')
    with pytest.raises(QuerySeemsToRun, match=r"commits/3 was written meanwhile: a query runs"):
        apply(logged)
    assert (logged.root / "commits/3").read_bytes() == b'v1\n{"nextBatchWatermarkMs":9}'
    assert not (logged.root / "offsets/3").exists()


def test_the_offsets_are_the_last_object_and_a_failed_write_says_that_the_new_number_counts(
    logged: Repartitioned, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged.column_families()
    metadata = logged.root / "state/0/_metadata/v2/0"
    metadata.write_text(metadata.read_text().replace('"x"', '"transformWithStateExec"'))
    put, names = Storage.replace, []

    def replace(storage: Storage, name: str, content: bytes) -> None:
        names.append(name)
        if len(names) == 2:
            raise UnreadableStorage(f"{name} could not be created")
        put(storage, name, content)

    monkeypatch.setattr(Storage, "replace", replace)
    with pytest.raises(UnreadableStorage, match=r"counts, by commits/3: repeat the command, which writes the rest"):
        apply(logged)
    assert apply(logged).is_applied
    assert names == ["state/0/_metadata/v2/3", "offsets/3", "offsets/3"]


def test_a_rollback_that_ran_meanwhile_is_named(logged: Repartitioned, monkeypatch: pytest.MonkeyPatch) -> None:
    def roll_back_meanwhile(_stores: WrittenStores, content: bytes) -> bytes:
        roll_back(logged.root)
        return content

    monkeypatch.setattr(WrittenStores, "meanwhile", roll_back_meanwhile)
    with pytest.raises(QuerySeemsToRun, match=r"commits/2 of .* was deleted, and commits/3 written: a rollback ran"):
        apply(logged)


def test_a_refusal_of_what_the_first_request_has_created_is_success(
    logged: Repartitioned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WrittenStores, "meanwhile", lambda _self, content: content)
    assert apply(logged).is_applied
    assert f'"{PARTITIONS}":"3"' in (logged.root / "offsets/3").read_text()


def while_written(monkeypatch: pytest.MonkeyPatch, step: Callable[[Path], object]) -> None:
    """Let something happen to the checkpoint while the stores are written."""

    def write(stores: WrittenStores) -> tuple[dict[int, list[list[str]]], list[Any]]:
        step(stores._root)
        return {}, [0]

    monkeypatch.setattr(WrittenStores, "write", write)


def check_lock(root: Path) -> None:
    assert is_lock((root / "offsets/3").read_bytes())


def test_the_lock_is_replaced_by_the_offsets(logged: Repartitioned, monkeypatch: pytest.MonkeyPatch) -> None:
    logged.plain_entry(MOVED - 1)
    (logged.root / "offsets/.3.crc").write_bytes(b"crc")
    while_written(monkeypatch, check_lock)
    assert apply(logged).is_applied
    assert f'"{PARTITIONS}":"3"' in (logged.root / "offsets/3").read_text()
    assert not (logged.root / "offsets/.3.crc").exists()


def leave_snapshots(root: Path) -> None:
    """Write plain snapshots of versions that two batches and interrupted repartitions have made, with checksum files.

    One partition is not of the newest batch, one snapshot has a checkpoint id, one has left its checksum file alone.
    """
    for name in ("0/1.zip", "1/1.zip", "0/2.zip", "0/4.zip", "1/9.zip", "1/4_id.zip", "2/2.zip", "2/4.zip"):
        store, last = root / "state/0" / name[0], name[2:]
        store.mkdir(exist_ok=True)
        for file in (last, f".{last}.crc", f"{last}.crc", f".{last}.crc.crc"):
            (store / file).write_bytes(zip_of({}))
    (root / "state/0/1/.5.zip.crc").write_bytes(b"crc")
    aged(root)


def snapshot_files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root / "state/0")) for path in root.glob("state/0/*/*zip*"))


@pytest.mark.parametrize(
    ("visible", "left"), [(1, {"0/1.zip", "1/1.zip"}), (3, {"0/1.zip", "0/2.zip", "1/1.zip", "2/2.zip"})]
)
def test_snapshots_of_earlier_tries_are_deleted_before_any_is_written(
    logged: Repartitioned, monkeypatch: pytest.MonkeyPatch, visible: int, left: set[str]
) -> None:
    """The new commit entry would make them visible, as bases of batches that are rebuilt from earlier ones."""
    for batch in range(MOVED):
        logged.entry(batch, logged.changes(batch), listed=Listed(since=batch, plain_up_to=min(visible, batch)))
    if visible == MOVED:
        logged.plain_entry(MOVED - 1)
    leave_snapshots(logged.root)
    seen = []

    def look(root: Path) -> None:
        seen.extend(snapshot_files(root))
        assert is_lock((root / "offsets/3").read_bytes()) if visible == MOVED else not (root / "offsets/3").exists()

    while_written(monkeypatch, look)
    assert apply(logged).is_applied
    assert {name for name in seen if name.endswith(".zip")} == left
    assert len(seen) == 4 * len(left), seen


def test_no_snapshot_is_deleted_once_a_query_has_committed_a_batch(
    logged: Repartitioned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be its own, where it does not write to the log."""
    leave_snapshots(logged.root)
    before = snapshot_files(logged.root)
    monkeypatch.setattr(activity, "refuse_if_running", lambda _checkpoint, _stopped: logged.plain_entry(MOVED))
    with pytest.raises(QuerySeemsToRun, match="its newest batch is 3 and was 2"):
        apply(logged)
    assert snapshot_files(logged.root) == before


def test_an_interrupted_deletion_leaves_no_checksum_file_alone(
    logged: Repartitioned, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_snapshots(logged.root)
    (logged.root / "state/0/1/.5.zip.crc").unlink()
    delete, allowed = Storage.delete, ["one"]

    def interrupted(storage: Storage, name: str) -> bool:
        allowed.pop()
        return delete(storage, name)

    monkeypatch.setattr(Storage, "delete", interrupted)
    while left := snapshot_files(logged.root):
        assert {file_of(name) for name in left} <= {*left}
        allowed[:] = ["one"]
        with suppress(IndexError):
            apply(logged)


def unlock(root: Path) -> None:
    check_lock(root)
    (root / "offsets/3").unlink()


def begin(root: Path) -> None:
    (root / "offsets/3").write_text("v1\n{}")


def roll_back(root: Path) -> None:
    for directory in ("commits", "offsets"):
        (root / directory / "2").unlink()


@pytest.mark.parametrize(
    ("step", "has_lock", "why"),
    [
        (unlock, True, r"offsets/3 .*, which locks it, was deleted"),
        (begin, False, r"offsets/3 .* was written meanwhile"),
        (roll_back, False, "its newest batch is 1 and was 2"),
    ],
)
def test_what_happens_meanwhile_is_found_before_the_commit_entry(
    logged: Repartitioned, monkeypatch: pytest.MonkeyPatch, step: Callable[[Path], object], has_lock: bool, why: str
) -> None:
    if has_lock:
        logged.plain_entry(MOVED - 1)
    while_written(monkeypatch, step)
    with pytest.raises(QuerySeemsToRun, match=why):
        apply(logged)
    assert not (logged.root / "commits/3").exists()
