# SPDX-License-Identifier: Apache-2.0
"""Verification counts each byte of changelogs and snapshots once: as read, or as not read."""

from pathlib import Path

from invoked import dstl
from verified import ten_batches, verified
from written_checkpoint import SST, Written, WrittenCheckpoint


def test_zips_of_snapshots_are_counted_once_whether_their_entry_is_read_or_not(tmp_path: Path) -> None:
    """A restart reads the entry of the newest snapshots whole, and of the older ones the zips alone."""
    written = WrittenCheckpoint(tmp_path / "q").begin()
    for batch in range(8):
        written.batch(batch, snapshots=batch == 5)
        if batch == 2:
            one = [segment for segment in written.snapshots(2) if segment.partition == 0]
            written.held = [held for held in written.held if held.partition == 0]
            written.entry(2, [*written.changes(2), *one])
    found, deep = verified(written.root), verified(written.root, deep=True)
    assert (deep.damages, deep.unread) == ([], {})
    assert found.unread == {"changelogs": 5 * 2 * 40, "snapshots": 3 * 60}
    assert found.counts.checked_bytes + sum(found.unread.values()) == deep.counts.checked_bytes


def test_the_bytes_of_plain_files_without_a_checksum_stay_unread(tmp_path: Path) -> None:
    checkpoint = WrittenCheckpoint(tmp_path / "q").begin()
    checkpoint.plain_entry(0)
    checkpoint.batch(1)
    assert verified(checkpoint.root, deep=True).unread == {"without checksum": 80}
    output = dstl("verify", str(checkpoint.root), "--deep").output
    assert "Not read: 80 B of plain files, for which Spark keeps no checksum" in output
    assert output.endswith("No damage found in what was read. The newest batch is 1.\n")


def test_a_part_that_many_entries_name_is_read_and_counted_once(tmp_path: Path) -> None:
    written = ten_batches(tmp_path / "q")
    before = verified(written.root, deep=True).counts.checked_bytes
    file = Written(0, 0, 9, b"shared" * 20, kind=SST, qualifier="000042-shared")
    places = written.data_file([file])
    for batch in (8, 9):
        shared = Written(0, 0, batch + 1, places[file.name], kind=SST, qualifier="000042-shared")
        written.entry(batch, [*written.changes(batch), shared])
    assert verified(written.root, deep=True).counts.checked_bytes == before + 120
