# SPDX-License-Identifier: Apache-2.0
"""`dstl repartition` plans and refuses without a Java process; tests/tools/test_repartition.py writes states."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from invoked import dstl, ended, succeeded
from plain_checkpoint import PlainCheckpoint
from written_checkpoint import aged

import spark_dstl
from spark_dstl import CannotRepartition, QuerySeemsToRun
from spark_dstl.checkpoint.convert.point import Offsets
from spark_dstl.checkpoint.reading import read_entry
from spark_dstl.checkpoint.repartition.entries import Note, commit_of, is_lock, lock_of, note_in, offsets_of
from spark_dstl.checkpoint.repartition.plan import find_plan
from spark_dstl.checkpoint.repartition.repartition import Repartition
from spark_dstl.checkpoint.repartition.stores import StoreRepartition
from spark_dstl.checkpoint.sparkfiles import HDFS_BACKED, OURS, PARTITIONS, PROVIDER, STOCKS


@pytest.fixture
def plain(tmp_path: Path) -> PlainCheckpoint:
    checkpoint = PlainCheckpoint(tmp_path / "query", STOCKS)
    aged(checkpoint.root)
    return checkpoint


def planned(plain: PlainCheckpoint, partitions: int = 3) -> Result:
    return succeeded("repartition", plain.root, "--partitions", partitions)


def refusal(plain: PlainCheckpoint, partitions: int = 3) -> str:
    with spark_dstl.open(str(plain.root)) as checkpoint, pytest.raises(CannotRepartition) as refused:
        checkpoint.repartition(partitions)
    return str(refused.value)


def test_without_apply_it_says_what_it_would_do(plain: PlainCheckpoint) -> None:
    before = sorted(plain.root.rglob("*"))
    told = planned(plain)
    assert "operator 0 (stateStoreSave): 3 partitions" in told.output
    assert "into 3 partitions instead of 2. Nothing is written yet" in told.output
    assert sorted(plain.root.rglob("*")) == before
    with spark_dstl.open(str(plain.root)) as checkpoint:
        done = checkpoint.repartition(3)
    assert (done.batch, done.before, done.partitions, done.is_applied) == (2, 2, 3, False)


def test_an_operator_in_one_partition_stays_there(plain: PlainCheckpoint) -> None:
    plain.operator(1, "globalLimit")
    with spark_dstl.open(str(plain.root)) as checkpoint:
        assert [one.partitions for one in checkpoint.repartition(3).stores] == [3, 1]


def test_the_same_number_and_impossible_numbers_are_refused(plain: PlainCheckpoint) -> None:
    assert "has 2 partitions already" in refusal(plain, 2)
    assert "0 is no number of partitions: give one from 1 to 100000" in refusal(plain, 0)
    assert "100001 is no number" in refusal(plain, 100_001)


@pytest.mark.parametrize("partitions", [1, 100_000])
def test_the_least_and_the_greatest_number_are_possible(plain: PlainCheckpoint, partitions: int) -> None:
    with spark_dstl.open(str(plain.root)) as checkpoint:
        assert checkpoint.repartition(partitions).partitions == partitions


def test_a_begun_batch_and_a_missing_one_are_refused(plain: PlainCheckpoint) -> None:
    plain.offsets(3)
    aged(plain.root)
    assert "has begun batch 3, and committed batch 2: start the query with its present number" in refusal(plain)
    for batch in range(3):
        (plain.root / f"commits/{batch}").unlink()
    assert "no batch of" in refusal(plain)


def test_other_providers_and_operators_are_refused(plain: PlainCheckpoint) -> None:
    plain.operator(1, "another")
    assert "operator 1 of" in refusal(plain)
    plain.operator(1, "dedupe")
    plain.put("state/2/0/1.zip", "")
    assert "state/2/_metadata/metadata is missing" in refusal(plain)
    plain.offsets(2, **{PROVIDER: HDFS_BACKED})
    assert "Convert the checkpoint first: dstl convert" in refusal(plain)


def test_damaged_metadata_of_an_operator_is_found_before_anything_is_written(plain: PlainCheckpoint) -> None:
    described = (plain.root / "state/0/_metadata/metadata").read_text()
    for batch in (0, 2):
        plain.put(f"state/0/_metadata/v2/{batch}", described.replace("v1", "v2"))
    planned(plain)
    for damaged in ("", "v2\n{}", described[:-9], described.replace("stateStoreInfo", "stateStoreInf_")):
        plain.put("state/0/_metadata/v2/2", damaged)
        assert "state/0/_metadata/v2/2 is missing or damaged: restore it" in refusal(plain)


def test_state_in_one_partition_is_refused(plain: PlainCheckpoint) -> None:
    plain.operator(0, "stateStoreSave", key="")
    assert "an aggregation without keys, or a limit" in refusal(plain)


def test_a_query_that_seems_to_run_is_refused(plain: PlainCheckpoint) -> None:
    plain.offsets(2)
    ended(4, "repartition", plain.root, "--partitions", "3", "--apply")


@pytest.mark.parametrize("apply", [(), ("--apply",)])
def test_beside_a_running_query_the_advice_is_to_stop_it(plain: PlainCheckpoint, apply: tuple[str, ...]) -> None:
    """It has begun a batch most of the time."""
    plain.offsets(3)
    command = ("repartition", plain.root, "--partitions", "3", *apply)
    told = ended(4, *command)
    assert "a query seems to run" in told.output
    assert "Stop it" in told.output
    stopped = dstl(*command, "--stopped")
    assert (stopped.exit_code, "has begun batch 3, and committed batch 2" in stopped.output) == (1, True)


def test_the_way_back_is_a_command_with_the_checkpoint(plain: PlainCheckpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    def done(self: spark_dstl.Checkpoint, *_: object) -> Repartition:
        return Repartition(self.path, 2, 2, 3, 0, [], is_applied=True)

    monkeypatch.setattr(spark_dstl.Checkpoint, "repartition", done)
    assert planned(plain).output.endswith(f"Start the query. dstl rollback {plain.root} --to 2 goes back.\n")


def test_a_lock_is_no_begun_batch_and_not_readable_by_spark(plain: PlainCheckpoint) -> None:
    lock = lock_of(str(plain.root), 2)
    assert is_lock(lock)
    assert not is_lock(b"v1\n{}")
    assert f"dstl rollback {plain.root} --to 2".encode() in lock
    assert not lock.startswith(b"v")
    plain.put("offsets/3", lock.decode())
    planned(plain)
    # The query does not start, although it has the number that it shall have.
    ways_out = f"has 2 partitions already, and offsets/3 locks it: go back with dstl rollback {plain.root} --to 2, or"
    assert ways_out in refusal(plain, 2)


def test_the_commit_entry_carries_the_offsets(plain: PlainCheckpoint) -> None:
    before = Offsets(
        2, "v1", {"batchWatermarkMs": 5, "conf": {PROVIDER: OURS, PARTITIONS: "2"}}, b'{"path":"\xc3\xa4"}'
    )
    offsets = offsets_of(before, 3)
    assert offsets.split(b"\n")[2:] == [before.rest]
    with spark_dstl.open(str(plain.root)) as checkpoint:
        newest = read_entry(checkpoint.storage, 2)
        assert newest is not None
        assert note_in(newest) is None
        content = commit_of(newest, offsets, 3, {0: [["a"], ["b"], ["c"]]})
        plain.put("commits/3", content.decode())
        written = read_entry(checkpoint.storage, 3)
    lines = content.decode("ascii").split("\n")
    # The driver looks for this beginning.
    assert lines[2].startswith('{"repartition": 1,')
    assert json.loads(lines[1]) == {"nextBatchWatermarkMs": 7, "stateUniqueIds": {"0": [["a"], ["b"], ["c"]]}}
    assert written is not None
    assert note_in(written) == Note(3, offsets)
    assert "an interrupted change to 3 partitions" in refusal(plain, 4)
    assert f"go back with dstl rollback {plain.root} --to 2" in refusal(plain, 4)
    # Interrupted before it has replaced its lock.
    plain.put("offsets/3", lock_of(str(plain.root), 2).decode())
    assert "an interrupted change to 3 partitions" in refusal(plain, 4)


@pytest.mark.parametrize("written_anew", [None, "1.zip", "4.zip", "4_another.zip"])
@pytest.mark.parametrize("deleted", [None, 0, 2])
def test_a_snapshot_that_another_command_deletes_meanwhile_ends_it(
    plain: PlainCheckpoint, deleted: int | None, written_anew: str | None
) -> None:
    """Nothing names it yet, so it looks like that of an interrupted command: another repartition writes its own."""

    def write(partition: int) -> Any:
        plain.put(f"state/0/{partition}/4.zip", "")
        return SimpleNamespace(failure=lambda: None, rows=int, id=lambda: None)

    def is_complete() -> bool:
        if deleted is not None:
            plain.remove(f"state/0/{deleted}/4.zip")
            if written_anew is not None:
                plain.put(f"state/0/{deleted}/{written_anew}", "other rows")
        return True

    read = SimpleNamespace(failure=lambda: None)
    store = SimpleNamespace(read=lambda *_: read, write=write, isComplete=is_complete)
    java: Any = SimpleNamespace(
        batch=lambda _: None,
        state_batch=lambda *_: SimpleNamespace(note=None),
        tool=lambda *_: SimpleNamespace(store=lambda *_: store),
        java_errors=nullcontext,
    )
    with spark_dstl.open(str(plain.root)) as checkpoint:
        writer = StoreRepartition(checkpoint, java, java, find_plan(checkpoint, 3), b"v1\n{}\n", 3)
        why = rf"snapshot in .*/state/0/{deleted} was deleted meanwhile, .* as it was. Begin again"
        with nullcontext() if deleted is None else pytest.raises(QuerySeemsToRun, match=why):
            assert writer.write() == ({}, [0])
