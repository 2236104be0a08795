# SPDX-License-Identifier: Apache-2.0
"""Batches whose entries Spark keeps after its maintenance has deleted their state."""

from pathlib import Path

import pytest
from verified import purge, verified
from written_checkpoint import WrittenCheckpoint, aged, zip_of

import spark_dstl
from spark_dstl import CannotRollBack
from spark_dstl.checkpoint.sparkfiles import STOCKS


def maintained(root: Path, oldest: int, snapshots: tuple[int, ...], changelogs: tuple[int, ...] = ()) -> Path:
    """Batches up to 6 from `oldest` on, without the log, and with plain files of these versions."""
    written = WrittenCheckpoint(root, partitions=1, provider=STOCKS).begin()
    for batch in range(7):
        written.offsets(batch)
        (root / f"commits/{batch}").write_text('v1\n{"nextBatchWatermarkMs":0}')
    purge(root, oldest)
    for version in snapshots:
        (root / f"state/0/0/{version}.zip").write_bytes(zip_of({}))
    for version in changelogs:
        (root / f"state/0/0/{version}.changelog").write_bytes(b"v2")
    aged(root)
    return root


# While a batch runs, Spark may have deleted the state of another one, and not yet its entry.
@pytest.mark.parametrize(("snapshots", "changelogs"), [((5, 6, 7), ()), ((6, 7), ()), ((5,), (5, 6, 7))])
def test_the_oldest_batches_whose_state_spark_has_deleted_are_no_damage(
    tmp_path: Path, snapshots: tuple[int, ...], changelogs: tuple[int, ...]
) -> None:
    root = maintained(tmp_path / "q", 3, snapshots, changelogs)
    found = verified(root)
    assert (found.is_damaged, found.damages, found.lost, found.newest_undamaged) == (False, [], {}, 6)
    assert list(found.given_up) == list(range(3, snapshots[0] - 1))
    assert [one.object.removeprefix(f"{root}/") for one in found.notes] == [f"commits/{one}" for one in found.given_up]
    with spark_dstl.open(str(root)) as checkpoint:
        with pytest.raises(CannotRollBack, match=rf"Spark's maintenance has deleted.*oldest {snapshots[0] - 1}"):
            checkpoint.plan_rollback(3)
        assert checkpoint.export(str(tmp_path / "export"), stopped=True).batches == list(range(snapshots[0] - 1, 7))


def test_older_changes_in_the_log_are_no_state_of_a_batch_without_the_log(tmp_path: Path) -> None:
    root = maintained(tmp_path / "q", 3, (5, 6, 7))
    written = WrittenCheckpoint(root, partitions=1, provider=STOCKS)
    for batch in range(3):
        written.batch(batch)
        (root / f"offsets/{batch}").unlink()
    found = verified(aged(root))
    assert (found.damages, found.lost, list(found.given_up)) == ([], {}, [3])


@pytest.mark.parametrize(
    ("in_log", "snapshots", "changelogs", "given_up"),
    [
        (False, (5, 6, 7), (), [3]),
        (True, (5, 6, 7), (), [3]),
        (False, (3, 6), (4, 5, 6, 7), []),
        # Spark has purged the entry of a changelog that a retained version needs.
        (False, (2,), (3, 4, 5, 6, 7), []),
    ],
)
def test_spark_deletes_the_state_of_the_oldest_batch_above_an_entry_that_fences(
    tmp_path: Path, in_log: bool, snapshots: tuple[int, ...], changelogs: tuple[int, ...], given_up: list[int]
) -> None:
    """The snapshots of Spark's provider are plain files where the changes are in the log as well."""
    root = maintained(tmp_path / "q", 3, snapshots, changelogs)
    written = WrittenCheckpoint(root, partitions=1, provider=STOCKS, epoch=2)
    written.claim(first=0)
    for batch in (0, *(range(3, 7) if in_log else ())):
        written.batch(batch)
    (root / "offsets/0").unlink()
    found = verified(aged(root))
    assert (found.damages, found.lost, list(found.given_up), found.newest_undamaged) == ([], {}, given_up, 6)


def test_a_missing_entry_above_one_that_fences_is_damage_if_no_file_has_its_changes(tmp_path: Path) -> None:
    root = maintained(tmp_path / "q", 3, (2,), (4, 5, 6, 7))
    written = WrittenCheckpoint(root, partitions=1, provider=STOCKS, epoch=2)
    written.claim(first=0)
    written.batch(0)
    (root / "offsets/0").unlink()
    found = verified(aged(root))
    assert [one.object for one in found.damages] == [f"{root}/commits/1 to 2"]
    assert list(found.lost) == [3, 4, 5, 6]


@pytest.mark.parametrize(("unfinished", "is_damaged"), [((4,), False), ((4, 5), False), ((5,), True), ((7,), True)])
def test_a_snapshot_that_spark_has_not_deleted_to_its_end_is_no_damage(
    tmp_path: Path, unfinished: tuple[int, ...], is_damaged: bool
) -> None:
    """Spark deletes the files of its oldest snapshots first, and then their zips."""
    root = maintained(tmp_path / "q", 3, (4, 5, 6, 7))
    for version in unfinished:
        (root / f"state/0/0/{version}.zip").write_bytes(zip_of({"000008-x.sst": b"sst"}))
    found = verified(aged(root), deep=True)
    assert found.is_damaged == is_damaged, (found.damages, found.lost)
    if not is_damaged:
        assert list(found.given_up) == [version - 1 for version in unfinished]
        notes = [one.object.removeprefix(f"{root}/") for one in found.notes if "interrupted" in one.what]
        assert notes == [f"state/0/0/{version}.zip" for version in unfinished]


@pytest.mark.parametrize(
    ("oldest", "snapshots", "changelogs", "lost"),
    [
        (1, (5, 6, 7), (), [3]),
        (5, (), (), [5, 6]),
        (5, (8,), (), [5, 6]),
        (3, (6, 7), (5,), [3, 4]),
        (3, (5, 7), (), [5]),
    ],
    ids=["a third batch", "no snapshot", "a snapshot above", "a changelog is left", "one in the middle"],
)
def test_other_batches_without_state_are_lost(
    tmp_path: Path, oldest: int, snapshots: tuple[int, ...], changelogs: tuple[int, ...], lost: list[int]
) -> None:
    found = verified(maintained(tmp_path / "q", oldest, snapshots, changelogs))
    assert (sorted(found.lost), found.is_damaged) == (lost, True)


def test_a_batch_that_is_lost_for_another_reason_is_not_given_up(tmp_path: Path) -> None:
    root = maintained(tmp_path / "q", 3, (4, 5, 6, 7))
    (root / "commits/3").write_text("v1\nno metadata of a batch")
    found = verified(root)
    assert (list(found.lost), found.given_up, found.is_damaged) == ([3], {}, True)


def test_the_log_deletes_nothing_that_its_entries_need(tmp_path: Path) -> None:
    written = WrittenCheckpoint(tmp_path / "q", partitions=2).begin()
    for batch in range(2, 5):
        # That of partition 0 is lost.
        written.entry(batch, written.changes(batch)[1 if batch == 2 else 0 :])
    for snapshot in ("0/4", "1/3"):
        (written.root / f"state/0/{snapshot}.zip").write_bytes(zip_of({}))
    aged(written.root)
    assert list(verified(written.root).lost) == [2]
