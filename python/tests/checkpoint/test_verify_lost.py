# SPDX-License-Identifier: Apache-2.0
"""Which batches are lost with a damaged object, and which object a start writes anew."""

import json
from pathlib import Path

import google_crc32c
import pytest
from verified import purge, ten_batches, verified
from written_checkpoint import Held, Listed, Written, WrittenCheckpoint, zip_of


@pytest.mark.parametrize("deep", [False, True])
def test_a_snapshot_that_is_no_zip_loses_the_batches_that_only_it_can_rebuild(tmp_path: Path, deep: bool) -> None:
    """Its bytes are those that were written."""
    written = WrittenCheckpoint(tmp_path / "q", partitions=1).begin().batches(range(3))
    held = [Held(0, 0, 4, 3)]
    packed = Written(0, 0, 4, b"not a zip", kind=2)
    written.entry(3, [*written.changes(3), packed], listed=Listed(held=held))
    for batch in (4, 5):
        written.entry(batch, written.changes(batch), listed=Listed(held=held))
    purge(written.root, 3)
    found = verified(written.root, deep)
    assert sorted(found.lost) == [3, 4, 5]
    assert found.newest_undamaged is None


def test_a_plain_snapshot_with_another_checksum_loses_the_batches_that_only_it_can_rebuild(tmp_path: Path) -> None:
    """It is a whole zip: one of another snapshot."""
    written = WrittenCheckpoint(tmp_path / "q", partitions=1).begin().batches(range(4))
    purge(written.root, 2)
    zipped = written.root / "state/0/0/3.zip"
    zipped.write_bytes(zip_of({}))
    content = zipped.read_bytes() + b"x"
    value = google_crc32c.value(content)
    checksum = {"algorithm": "CRC32C", "value": value, "mainFileSize": len(content)}
    zipped.with_name("3.zip.crc").write_text(json.dumps(checksum))
    found = verified(written.root, deep=True)
    assert "it is not what Spark wrote" in found.damages[0].what
    assert sorted(found.lost) == [2, 3]


def test_damaged_offsets_of_a_first_batch_that_is_committed_are_not_to_be_deleted(tmp_path: Path) -> None:
    """Spark does not write them again."""
    written = WrittenCheckpoint(tmp_path / "q").begin()
    written.batch(0)
    (written.root / "offsets/0").write_bytes(b"")
    found = verified(written.root)
    assert (found.in_the_way, found.lost) == ([], {0: "offsets/0 is damaged"})


def test_a_lost_newest_batch_is_not_one_that_was_begun_after_it(tmp_path: Path) -> None:
    written = ten_batches(tmp_path / "q")
    (written.root / "offsets/9").write_bytes(b"")
    found = verified(written.root)
    assert (sorted(found.lost), found.lost_begun) == ([9], None)


def test_an_entry_of_an_earlier_epoch_than_the_one_before_is_damage(tmp_path: Path) -> None:
    written = WrittenCheckpoint(tmp_path / "q").begin()
    for batch, epoch in enumerate((1, 3, 2)):
        written.epoch = epoch
        written.claim()
        written.batch(batch)
    (damage,) = verified(written.root).damages
    assert damage.object == str(written.root / "commits/2")
    assert damage.what == "it is of epoch 2, after one of epoch 3: written late by a fenced driver"
