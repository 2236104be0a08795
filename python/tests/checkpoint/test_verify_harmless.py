# SPDX-License-Identifier: Apache-2.0
"""Verification reports neither leftovers nor the work of a running query as damage."""

from pathlib import Path

import pytest
from invoked import dstl, succeeded
from verified import data, entry, flip, purge, ten_batches, verified
from written_checkpoint import RUN, Written, WrittenCheckpoint, aged, zip_of

import spark_dstl
from spark_dstl.checkpoint.storage import StoredObject
from spark_dstl.checkpoint.verification import verify


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    return ten_batches(tmp_path / "q")


def test_objects_that_nothing_names_are_leftovers_and_not_damage(written: WrittenCheckpoint) -> None:
    written.data_file([Written(0, 0, 99, b"x")])
    run = written.root / f"dstl/data/1-{RUN}"
    (run / ".1-9-5eed.log.abc.tmp").write_bytes(b"")
    (written.root / "dstl/epochs/1-5eed.trial").write_bytes(b"")
    (written.root / "commits/.10.abc.tmp").write_bytes(b"")
    (written.root / "state/0/0/12.zip").write_bytes(zip_of({}))
    written.epoch = 2
    written.claim()
    (written.root / "dstl/epochs/1.ended").write_bytes(b"ended\n")
    found = verified(written.root)
    assert not found.is_damaged
    assert {Path(one.object).name for one in found.leftovers} == {
        "1-4-5eed.log", ".1-9-5eed.log.abc.tmp", "1-5eed.trial", ".10.abc.tmp", "12.zip",
    }  # fmt: skip
    assert found.running is not None
    assert found.running.endswith("if the clocks here and of storage agree, and no run has ended since")
    assert "A query seems to run" in succeeded("verify", written.root).output
    aged(written.root)
    assert f"Once the query is stopped, dstl gc {written.root} --dry-run" in dstl("verify", str(written.root)).output


@pytest.mark.parametrize("name", ["commits/6.bak", "dstl/data/readme.txt", "dstl/epochs/x"])
def test_a_foreign_file_is_noted(written: WrittenCheckpoint, name: str) -> None:
    (written.root / name).write_text("x")
    found = verified(written.root)
    assert not found.is_damaged
    assert [one.object for one in found.notes] == [str(written.root / name)]


def test_partitions_without_a_directory_are_noted(tmp_path: Path) -> None:
    checkpoint = WrittenCheckpoint(tmp_path / "q", partitions=14).begin()
    checkpoint.batch(0)
    for partition in range(1, 14):
        (checkpoint.root / f"state/0/{partition}").rmdir()
    found = verified(checkpoint.root)
    assert not found.is_damaged
    assert [one.object for one in found.notes] == [str(checkpoint.root / "state/0")]
    assert "13 of 14 partitions (1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more)" in found.notes[0].what


def test_checksum_files_of_hadoop_are_part_of_local_checkpoints(written: WrittenCheckpoint) -> None:
    for name in ("commits/.3.crc", "offsets/.3.crc", ".metadata.crc", "dstl/epochs/.1.crc"):
        (written.root / name).write_bytes(b"crc")
    found = verified(written.root)
    assert (found.is_damaged, found.notes, found.leftovers) == (False, [], [])


def test_objects_that_a_query_deletes_between_the_looks_are_not_damage(written: WrittenCheckpoint) -> None:
    """The query deletes data files before the entry that names them."""
    data(written.root, 1).unlink()
    assert verified(written.root).is_damaged

    def retention(_seconds: float) -> None:
        purge(written.root, 4)

    assert not verified(written.root, then=retention).is_damaged


def test_damage_that_only_the_second_look_finds_is_not_reported(written: WrittenCheckpoint) -> None:
    """The query may delete the entries that name the object at that time."""
    data(written.root, 1).unlink()

    def later(_seconds: float) -> None:
        data(written.root, 3).unlink()

    found = verified(written.root, then=later)
    assert [Path(one.object).name for one in found.damages] == [data(written.root, 1).name]
    assert (list(found.lost), found.newest_undamaged, found.way_back) == ([3], 9, None)


def test_no_object_is_to_be_deleted_for_damage_that_only_the_second_look_finds(written: WrittenCheckpoint) -> None:
    (written.root / "dstl/epochs/1").write_bytes(b"x")

    def later(_seconds: float) -> None:
        (written.root / "state/0/0/_metadata/schema").write_bytes(b"x")

    found = verified(written.root, then=later)
    assert [one.object for one in found.damages] == [str(written.root / "dstl/epochs/1")]
    assert (found.in_the_way, found.newest_undamaged) == ([], 9)


def test_a_checkpoint_that_stays_open_is_verified_as_it_is_now(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert checkpoint.verify().newest_batch == 9
        written.batch(10)
        flip(entry(written.root, 6), -70)
        found = checkpoint.verify()
    assert (found.newest_batch, found.newest_undamaged) == (10, 5)


def test_a_data_file_that_no_retained_version_needs_may_be_missing(written: WrittenCheckpoint) -> None:
    """A deletion was interrupted, and the next run repeats it."""
    purge(written.root, 2)
    for batch in (2, 3, 4):
        (written.root / f"offsets/{batch}").unlink()
    data(written.root, 1).unlink()
    entry(written.root, 2).unlink()
    found = verified(written.root)
    assert not found.is_damaged, (found.damages, found.lost)
    assert "which no retained version needs" in found.notes[0].what


def test_an_entry_that_fences_a_stopped_driver_is_not_damage(tmp_path: Path) -> None:
    """Retention has deleted the entries after it; the driver has begun its batch again before it was refused."""
    checkpoint = WrittenCheckpoint(tmp_path / "q").begin().batches(range(3))
    checkpoint.epoch = 2
    checkpoint.claim(first=3)
    checkpoint.batches(range(3, 12), snapshots=(8, 9))
    checkpoint.held = checkpoint.held[-2:]
    for batch in (0, 1, 2, 4, 5, 6, 7):
        entry(checkpoint.root, batch).unlink()
    for batch in range(10):
        (checkpoint.root / f"offsets/{batch}").unlink()
    found = verified(checkpoint.root)
    assert (found.is_damaged, found.notes, found.newest_undamaged) == (False, [], 11)
    checkpoint.offsets(3)
    found = verified(checkpoint.root)
    assert (found.is_damaged, found.newest_undamaged) == (False, 11), (found.damages, found.lost)
    assert [one.object for one in found.notes] == [str(checkpoint.root / "offsets/3")]
    # The driver has ended since, so retention has deleted what fenced it.
    fence = entry(checkpoint.root, 3)
    content = fence.read_bytes()
    fence.unlink()
    found = verified(checkpoint.root)
    assert (found.is_damaged, found.newest_undamaged) == (False, 11), (found.damages, found.lost)
    assert [one.object for one in found.notes] == [str(checkpoint.root / "offsets/3")]
    fence.write_bytes(content)
    # Without the claim the reason for these entries is unknown.
    (checkpoint.root / "dstl/epochs/2").unlink()
    assert verified(checkpoint.root).is_damaged


def test_batches_that_are_begun_and_committed_during_a_look_are_not_damage(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        objects, asked = checkpoint.storage.objects, []

        def running(directory: str = "", recursive: bool = False) -> list[StoredObject]:
            asked.append(directory)
            # The first look is for a running query alone.
            if directory == "offsets" and asked.count("offsets") == 2:
                for batch in (10, 11, 12):
                    written.batch(batch)
                written.offsets(13)
            return objects(directory, recursive)

        checkpoint.storage.objects = running  # type: ignore[method-assign]
        found = verify.verify(checkpoint, wait=lambda _seconds: pytest.fail("a second look was made"))
    assert (found.is_damaged, found.newest_batch) == (False, 9)
    assert found.running == "offsets/13 changed while this command looked"
