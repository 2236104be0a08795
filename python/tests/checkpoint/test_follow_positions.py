# SPDX-License-Identifier: Apache-2.0
"""Where a follower begins, and what it says of the run of a batch; without a Java process."""

from collections.abc import Iterator

import pytest
from imitated_java import following
from written_checkpoint import WrittenCheckpoint

import spark_dstl
from spark_dstl.checkpoint.following.changes import Position
from spark_dstl.checkpoint.reading import read_entry
from spark_dstl.errors import CheckpointNotFound, HistoryChanged


@pytest.fixture
def checkpoint(written: WrittenCheckpoint) -> Iterator[spark_dstl.Checkpoint]:
    with spark_dstl.open(str(written.root)) as opened:
        yield opened


@pytest.mark.parametrize("names_its_entry", [True, False])
def test_a_follower_continues_after_a_position(checkpoint: spark_dstl.Checkpoint, names_its_entry: bool) -> None:
    entry = read_entry(checkpoint.storage, 1)
    assert entry is not None
    assert entry.index is not None
    position = Position(1, entry.index.entry if names_its_entry else None)
    with following(checkpoint, position)[0] as followed:
        assert [one.batch for one in followed.changes(waits=False)] == [2, 3]


def test_a_follower_pins_the_batch_that_it_begins_after(checkpoint: spark_dstl.Checkpoint) -> None:
    with following(checkpoint, 1)[0]:
        assert [pin["batch"] for pin in checkpoint.pins().to_pylist()] == [1]


def test_a_change_names_a_new_run_and_no_new_start(checkpoint: spark_dstl.Checkpoint) -> None:
    followed, reader = following(checkpoint, 0)
    reader.later_runs = {2: "another", 3: "another"}
    with followed:
        found = [(one.batch, one.is_new_run, one.is_new_start) for one in followed.changes(waits=False)]
    assert found == [(1, False, False), (2, True, False), (3, False, False)]


def test_a_rollback_names_the_batch_that_a_follower_began_after(
    written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint
) -> None:
    with following(checkpoint, 2)[0] as followed:
        assert [one.batch for one in followed.changes(waits=False)] == [3]
        (written.root / "commits/3").unlink()
        with pytest.raises(HistoryChanged) as raised:
            list(followed.changes(waits=False))
    assert raised.value.last == 2


def test_a_position_whose_batch_was_rolled_back_is_refused_with_the_cause(
    written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint
) -> None:
    (written.root / "commits/3").unlink()
    missing = "no commit entry of batch 3; it has those of batches 0 to 2"
    with pytest.raises(CheckpointNotFound, match=rf"{missing}\. A follower has had it: the query was rolled back"):
        following(checkpoint, Position(3, "id"))
    with pytest.raises(CheckpointNotFound, match=rf"{missing}$"):
        following(checkpoint, 3)


def test_a_batch_that_was_rolled_back_and_run_again_is_seen_before_the_next_one(
    written: WrittenCheckpoint, checkpoint: spark_dstl.Checkpoint
) -> None:
    with following(checkpoint, 3)[0] as followed:
        written.entry(3, written.changes(3), run=1)
        with pytest.raises(HistoryChanged, match="batch 3 is not what follows"):
            list(followed.changes(waits=False))
