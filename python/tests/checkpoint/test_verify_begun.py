# SPDX-License-Identifier: Apache-2.0
"""Verification judges the batch that was begun and is not committed, because a start runs it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from invoked import dstl, ended, succeeded
from verified import entry, purge, ten_batches, verified
from written_checkpoint import WrittenCheckpoint, aged

from spark_dstl.checkpoint.repartition.entries import lock_of
from spark_dstl.commands import console


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    """Batches 0 to 9 are committed, and 10 is begun; only the oldest entries, without a snapshot, are purged."""
    checkpoint = ten_batches(tmp_path / "q")
    purge(checkpoint.root, 4)
    checkpoint.offsets(10)
    return checkpoint


def without_entries(written: WrittenCheckpoint) -> None:
    written.offsets(11)


def without_source(written: WrittenCheckpoint) -> None:
    written.offsets(10, source='{"logOffset":1}')


def with_damaged_metadata(written: WrittenCheckpoint) -> None:
    written.column_families()
    (written.root / "state/0/_metadata/v2/10").write_bytes(b"x")


def with_offsets(content: bytes) -> Callable[[WrittenCheckpoint], object]:
    return lambda written: (written.root / "offsets/10").write_bytes(content)


DAMAGES: dict[str, tuple[Callable[[WrittenCheckpoint], object], int, str]] = {
    "empty offsets": (with_offsets(b""), 10, "offsets/10 is damaged"),
    "offsets that are not Spark's": (with_offsets(b"v1\n{x"), 10, "offsets/10 is damaged"),
    "the lock of a repartition": (with_offsets(lock_of("q", 9)), 10, "offsets/10 is damaged"),
    "a missing file of a source": (without_source, 10, "sources/0/1 is missing or damaged, and Spark does not start"),
    "damaged metadata of an operator": (with_damaged_metadata, 10, "state/0/_metadata/v2/10 is missing or damaged"),
    "a missing entry of a later batch": (without_entries, 11, "commits/10 is missing"),
}


@pytest.mark.parametrize(("damage", "begun", "why"), DAMAGES.values(), ids=DAMAGES)
def test_what_a_begun_batch_lacks_is_deleted_by_a_rollback_to_the_newest_batch(
    written: WrittenCheckpoint, damage: Callable[[WrittenCheckpoint], object], begun: int, why: str
) -> None:
    assert not verified(written.root).is_damaged
    damage(written)
    found = verified(written.root)
    assert len(found.damages) == 1
    assert list(found.lost) == [begun]
    assert found.lost[begun].startswith(why)
    assert (found.newest_batch, found.newest_undamaged, found.way_back) == (9, 9, 9)
    result = ended(console.DAMAGED, "verify", written.root)
    assert "the query can continue" not in result.output
    assert "The newest batch, 9, has no damage in what was read, but the query does not start" in result.output
    assert f"batch {begun} was begun after it" in result.output
    assert result.output.endswith(f"  dstl rollback {written.root} --to 9\n")
    aged(written.root)
    succeeded("rollback", written.root, "--to", "9", "--apply")
    assert not verified(written.root).is_damaged
    assert entry(written.root, 9).exists()


def test_the_lock_of_a_repartition_is_named_with_both_ways_out(written: WrittenCheckpoint) -> None:
    with_offsets(lock_of("q", 9))(written)
    what = "it is the lock of an interrupted dstl repartition or rollback: repeat the command, or roll back"
    assert [one.what for one in verified(written.root).damages] == [what]


def test_damaged_offsets_of_the_first_batch_can_be_deleted(tmp_path: Path) -> None:
    written = WrittenCheckpoint(tmp_path / "q").begin()
    offsets = written.root / "offsets/0"
    offsets.write_bytes(b"")
    found = verified(written.root)
    assert (found.newest_undamaged, found.way_back, found.in_the_way) == (None, None, [str(offsets)])
    assert dstl("verify", str(written.root)).output.endswith(f"and run dstl verify again:\n  {offsets}\n")
    offsets.unlink()
    assert not verified(written.root).is_damaged


def test_damaged_offsets_of_the_first_batch_stay_if_later_batches_were_begun(tmp_path: Path) -> None:
    """Entries were deleted: the query would begin with the first batch again."""
    written = WrittenCheckpoint(tmp_path / "q").begin()
    written.offsets(1)
    (written.root / "offsets/0").write_bytes(b"")
    assert verified(written.root).in_the_way == []


def test_a_batch_is_lost_if_spark_cannot_read_its_entry_without_a_log(tmp_path: Path) -> None:
    written = WrittenCheckpoint(tmp_path / "q").begin()
    for batch in range(4):
        written.plain_entry(batch)
    entry(written.root, 3).write_text("v1\n{garbage")
    found = verified(written.root)
    assert [one.what for one in found.damages] == ["its second line is not what Spark writes"]
    assert found.lost == {3: "commits/3 is damaged, and Spark does not start from it"}
    assert (found.newest_undamaged, found.way_back) == (2, 2)
