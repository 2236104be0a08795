# SPDX-License-Identifier: Apache-2.0
"""Checkpoint format 2, where a commit entry names the plain files of its batch by ids."""

import json
from pathlib import Path

import pytest
from verified import purge, verified
from written_checkpoint import WrittenCheckpoint, zip_of

import spark_dstl


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    """Batches 0 to 3 of stock Spark, each with another id."""
    checkpoint = WrittenCheckpoint(tmp_path / "q", partitions=1).begin()
    for batch in range(4):
        checkpoint.offsets(batch)
        line = json.dumps({"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": [[f"id{batch}"]]}})
        (checkpoint.root / f"commits/{batch}").write_text(f"v2\n{line}")
        (checkpoint.root / f"state/0/0/{batch + 1}_id{batch}.changelog").write_bytes(b"changes")
    return checkpoint


def test_a_batch_needs_the_changelog_that_its_entry_names(written: WrittenCheckpoint) -> None:
    assert not verified(written.root).is_damaged
    store = written.root / "state/0/0"
    (store / "4_id3.changelog").rename(store / "4_other.changelog")
    found = verified(written.root)
    assert found.lost == {3: "state of 0/0: version 4: commits/3 has no log, and there is no plain changelog"}
    assert found.newest_undamaged == 2


@pytest.mark.parametrize(("unique", "is_lost"), [("id1", False), ("other", True)])
def test_a_batch_is_rebuilt_from_a_snapshot_that_its_entry_names(
    written: WrittenCheckpoint, unique: str, is_lost: bool
) -> None:
    store = written.root / "state/0/0"
    (store / f"2_{unique}.zip").write_bytes(zip_of({}))
    purge(written.root, 1)
    for name in ("1_id0", "2_id1"):
        (store / f"{name}.changelog").unlink()
    assert sorted(verified(written.root).lost) == ([1, 2, 3] if is_lost else [])


def test_a_rollback_deletes_snapshots_without_an_id_before_their_entry_and_others_after_it(
    written: WrittenCheckpoint,
) -> None:
    """Only without an id Spark would take a snapshot for that of the batch that runs again.

    Of others Spark's maintenance would take the version for the newest, and delete snapshots that are needed.
    """
    for name in ("4_id3", "4"):
        (written.root / f"state/0/0/{name}.zip").write_bytes(zip_of({}))
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(1)
    of_3 = ["state/0/0/4.zip", "commits/3", "offsets/3", "state/0/0/4_id3.zip"]
    assert planned.objects == [*of_3, "commits/2", "offsets/2"]
