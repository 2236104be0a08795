# SPDX-License-Identifier: Apache-2.0
"""Verification counts each byte of changelogs and snapshots once: as read, or as not read."""

from pathlib import Path

from verified import verified
from written_checkpoint import WrittenCheckpoint


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
