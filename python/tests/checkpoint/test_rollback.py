# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import pytest
from invoked import dstl, ended, succeeded
from written_checkpoint import RUN, Held, Listed, Written, WrittenCheckpoint, after_each_deletion, aged, zip_of

import spark_dstl
from spark_dstl import CannotRollBack, DstlError, QuerySeemsToRun
from spark_dstl.checkpoint.changing import activity, leftovers, rollback
from spark_dstl.checkpoint.repartition.entries import lock_of
from spark_dstl.checkpoint.sparkfiles import HDFS_BACKED
from spark_dstl.commands import console
from spark_dstl.errors import PinTooLate


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    """Batches 0 to 6, and 7 begun; 5 in a data file; plain snapshots of versions 3 and 6, as with stock's provider."""
    checkpoint = WrittenCheckpoint(tmp_path / "q", partitions=1).begin().batches(range(7), large=(5,))
    checkpoint.offsets(7)
    store = checkpoint.root / "state/0/0"
    store.mkdir(parents=True, exist_ok=True)
    for version in (3, 6):
        (store / f"{version}.zip").write_bytes(zip_of({}))
        (store / f"{version}.zip.crc").write_text("{}")
    for name in ("commits/.6.crc", "offsets/.6.crc", "state/0/0/.6.zip.crc"):
        (checkpoint.root / name).write_bytes(b"crc")
    aged(checkpoint.root)
    return checkpoint


def batches(root: Path, directory: str) -> list[int]:
    return sorted(int(path.name) for path in (root / directory).iterdir() if path.name.isdigit())


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_without_apply_it_only_lists_the_objects_to_delete(written: WrittenCheckpoint) -> None:
    before = names(written.root)
    result = succeeded("rollback", written.root, "--to", "3")
    assert names(written.root) == before
    lines = result.output.splitlines()
    assert lines[0] == "would delete offsets/7"
    assert lines[-2] == "would delete offsets/4"
    assert "stop the query, add --apply" in lines[-1]


def test_a_rollback_to_the_newest_batch_deletes_what_was_begun_after_it(written: WrittenCheckpoint) -> None:
    planned = dstl("rollback", str(written.root), "--to", "6")
    assert planned.output.splitlines()[-1].startswith("Would undo what was begun after batch 6.")
    done = dstl("rollback", str(written.root), "--to", "6", "--apply")
    assert "What was begun after batch 6 is gone: 1 objects deleted." in done.output
    assert batches(written.root, "offsets")[-1] == 6


def test_with_apply_it_rolls_back(written: WrittenCheckpoint) -> None:
    result = succeeded("rollback", written.root, "--to", "3", "--apply")
    assert "Rolled back from batch 6 to 3: 12 objects deleted." in result.output
    assert batches(written.root, "commits") == batches(written.root, "offsets") == [0, 1, 2, 3]
    left = names(written.root)
    assert "state/0/0/3.zip" in left
    assert "state/0/0/3.zip.crc" in left
    assert not {name for name in left if "6.zip" in name or ".6.crc" in name}
    with spark_dstl.open(str(written.root)) as checkpoint:
        found = checkpoint.verify()
    assert (found.is_damaged, found.newest_undamaged) == (False, 3)
    again = dstl("rollback", str(written.root), "--to", "3", "--apply", "--stopped")
    assert "Batch 3 is the newest: there is nothing to delete." in again.output


def test_a_rollback_of_a_checkpoint_that_stays_open_is_planned_as_it_is_now(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert checkpoint.summary().newest_batch == 6
        written.batch(7)
        planned = checkpoint.plan_rollback(6)
    assert (planned.newest, planned.objects) == (7, ["commits/7", "offsets/7"])


def test_a_batch_that_was_begun_after_the_plan_stops_the_rollback(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(4)
        written.offsets(8)
        with pytest.raises(QuerySeemsToRun, match=r"offsets/8 .* was written after this rollback was planned"):
            checkpoint.apply_rollback(planned, stopped=True)
    assert (written.root / "commits/6").exists()


def test_the_pins_of_deleted_batches_are_deleted_first(written: WrittenCheckpoint) -> None:
    """Another batch of that number would be read with their copies of `offsets/N`."""
    with spark_dstl.open(str(written.root)) as checkpoint, checkpoint.pin(3), checkpoint.pin(6) as held:
        aged(written.root)
        planned = checkpoint.plan_rollback(3)
        first, *others = planned.objects
        assert first.startswith("dstl/epochs/6-")
        assert not [name for name in others if "epochs" in name]
        checkpoint.apply_rollback(planned)
        assert [pin["batch"] for pin in checkpoint.pins().to_pylist()] == [3]
        with pytest.raises(PinTooLate, match="`dstl rollback`"):
            held.renew()


def test_pins_that_readers_create_after_the_plan_are_deleted(written: WrittenCheckpoint) -> None:
    """A reader renews its pin under another name, with the copy of `offsets/N` of the deleted batch."""
    with spark_dstl.open(str(written.root)) as checkpoint, checkpoint.pin(3), checkpoint.pin(6) as held:
        planned = checkpoint.plan_rollback(3)
        held.renew()
        assert checkpoint.apply_rollback(planned, stopped=True).deleted == len(planned.objects)
        assert [pin["batch"] for pin in checkpoint.pins().to_pylist()] == [3]


def test_after_an_interrupt_the_checkpoint_starts_and_the_rollback_can_be_repeated(
    written: WrittenCheckpoint, tmp_path: Path
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(3).objects
    for copy, deleted in after_each_deletion(written.root, planned, tmp_path):
        committed, begun = batches(copy, "commits")[-1], batches(copy, "offsets")[-1]
        # As after a crash: Spark continues from there.
        assert begun - committed in (0, 1)
        with spark_dstl.open(str(copy)) as checkpoint:
            found = checkpoint.verify()
            assert (found.is_damaged, found.newest_undamaged) == (False, committed), (deleted, found.damages)
            # No plain snapshot of a version that a batch makes again.
            assert not [one for one in found.leftovers if "which is not committed" in one.what]
            checkpoint.apply_rollback(checkpoint.plan_rollback(3), stopped=True)
        assert batches(copy, "commits") == batches(copy, "offsets") == [0, 1, 2, 3]
        assert not (copy / "state/0/0/6.zip").exists()


def test_a_rollback_to_a_batch_that_cannot_be_rebuilt_is_refused(written: WrittenCheckpoint) -> None:
    content = bytearray((written.root / "commits/4").read_bytes())
    content[-70] ^= 1
    (written.root / "commits/4").write_bytes(bytes(content))
    (written.root / "state/0/0/6.zip").unlink()
    aged(written.root)
    with spark_dstl.open(str(written.root)) as checkpoint:
        with pytest.raises(CannotRollBack, match=r"commits/4 cannot be read\. The newest .* rolled back to is 3"):
            checkpoint.plan_rollback(5)
        with pytest.raises(CannotRollBack, match="there is no commits/9"):
            checkpoint.plan_rollback(9)
    succeeded("rollback", written.root, "--to", "3", "--apply")


def test_a_rollback_that_would_delete_the_needed_snapshot_is_refused(tmp_path: Path) -> None:
    checkpoint = WrittenCheckpoint(tmp_path / "q", partitions=1).begin().batches(range(6))
    packed = Written(0, 0, 4, zip_of({}), kind=2)
    checkpoint.offsets(6)
    checkpoint.entry(6, [*checkpoint.changes(6), packed], listed=Listed(held=[Held(0, 0, 4, 6)]))
    checkpoint.batch(7)
    for batch in range(4):
        (checkpoint.root / f"commits/{batch}").unlink()
    aged(checkpoint.root)
    with spark_dstl.open(str(checkpoint.root)) as opened:
        found = opened.verify()
        assert (found.is_damaged, found.newest_undamaged, sorted(found.held_above)) == (False, 7, [4, 5])
        assert opened.plan_rollback(6).objects == ["commits/7", "offsets/7"]
        with pytest.raises(CannotRollBack, match="commits/6 holds the snapshot that it is rebuilt from"):
            opened.plan_rollback(5)


def test_a_rollback_reads_before_what_a_start_from_its_batch_reads(written: WrittenCheckpoint) -> None:
    entry = written.root / "commits/2"
    content = bytearray(entry.read_bytes())
    content[content.index(b"DSTLLOG\n") + 30] ^= 1
    entry.write_bytes(bytes(content))
    (written.root / "state/0/0/3.zip").unlink()
    succeeded("verify", written.root)
    for deep in ((), ("--deep",)):
        assert "its bytes are damaged" in ended(1, "rollback", written.root, "--to", "2", *deep).output


def test_a_rollback_needs_the_offsets_of_the_batch_before(written: WrittenCheckpoint) -> None:
    (written.root / "offsets/1").unlink()
    (written.root / "offsets/0").unlink()
    result = ended(1, "rollback", written.root, "--to", "2")
    assert "there is no offsets/1, without which Spark does not start" in result.output
    assert "The newest batch that the query can be rolled back to is 6, the oldest 3" in result.output


@pytest.mark.parametrize("command", [("rollback", "--to", "3", "--apply"), ("gc", "--apply")])
def test_rollback_and_gc_are_refused_if_a_query_seems_to_run(
    written: WrittenCheckpoint, command: tuple[str, ...]
) -> None:
    written.offsets(7)
    before = names(written.root)
    result = ended(console.REFUSED, command[0], written.root, *command[1:])
    assert "a query seems to run" in result.output
    assert "offsets/7 was written" in result.output
    assert "--stopped" in result.output
    assert names(written.root) == before
    succeeded(command[0], written.root, *command[1:], "--stopped")


def test_a_run_with_an_end_mark_does_not_seem_to_run(written: WrittenCheckpoint) -> None:
    epochs = written.root / "dstl/epochs"
    written.offsets(7)
    os.utime(written.root / "offsets/7", (time.time() - 20, time.time() - 20))
    (epochs / "1.ended").write_text("ended\n")
    (epochs / ".1.ended.crc").write_text("crc")
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert activity.signs(checkpoint) is None
        (epochs / "2").write_text(f"claim {RUN} driver.example 8 1\n")
        os.utime(epochs / "2", (time.time() - 10, time.time() - 10))
        assert activity.signs(checkpoint) is not None, "the end mark is of the run before"
        (epochs / "2").unlink()
        assert activity.signs(checkpoint) is None
        written.offsets(7)
        os.utime(written.root / "offsets/7", (time.time() + 1, time.time() + 1))
        sign = activity.signs(checkpoint)
        assert sign is not None
        assert "offsets/7" in sign, "stock Spark writes no claim"


def test_a_rollback_is_refused_if_the_checkpoint_changes_during_the_look(written: WrittenCheckpoint) -> None:
    def query(_seconds: float) -> None:
        written.batch(7)

    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(3)
        with pytest.raises(QuerySeemsToRun, match=r"offsets/7 changed while this command looked"):
            rollback.apply_rollback(checkpoint, planned, stopped=True, wait=query)
        assert batches(written.root, "commits") == list(range(8))
        with pytest.raises(QuerySeemsToRun, match="its newest batch is 7 and was 6"):
            checkpoint.apply_rollback(planned, stopped=True)


def test_a_run_that_ends_during_the_look_is_not_a_running_query(written: WrittenCheckpoint) -> None:
    def end(_seconds: float) -> None:
        (written.root / "dstl/epochs/1.ended").write_text("ended\n")

    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(3)
        rollback.apply_rollback(checkpoint, planned, stopped=True, wait=end)
    assert batches(written.root, "commits") == list(range(4))


@pytest.mark.parametrize("ends", [True, False])
def test_the_last_uploads_and_deletions_of_a_stopped_run_are_waited_for(written: WrittenCheckpoint, ends: bool) -> None:
    waits = count(1)

    def upload(_seconds: float) -> None:
        written.data_file([Written(0, 0, 99, b"x" * 100)])
        (written.root / "commits/0").unlink(missing_ok=True)
        if next(waits) == 3 and ends:
            (written.root / "dstl/epochs/1.ended").write_text("ended\n")

    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = checkpoint.plan_rollback(3)
        refused = pytest.raises(QuerySeemsToRun, match=r"data/.* changed while this command looked. Stop it first")
        with nullcontext() if ends else refused:
            rollback.apply_rollback(checkpoint, planned, stopped=True, wait=upload)
    assert next(waits) == (4 if ends else 7)


def test_a_rollback_deletes_later_snapshots_with_an_id(written: WrittenCheckpoint) -> None:
    """Spark never loads one, but its maintenance would take it for the newest, and delete needed ones."""
    ids = {version: f"state/0/0/{version}_aaaaaaaa-0000-4000-8000-00000000000{version}.zip" for version in (3, 4, 5, 7)}
    for name in ids.values():
        (written.root / name).write_bytes(zip_of({}))
    aged(written.root)
    assert ids[5] in succeeded("rollback", written.root, "--to", "3").output
    succeeded("rollback", written.root, "--to", "3", "--apply")
    assert names(written.root) & {*ids.values()} == {ids[3], ids[4]}


def left_behind(written: WrittenCheckpoint) -> set[str]:
    """Write leftovers as queries leave them; return their names."""
    before = names(written.root)
    written.data_file([Written(0, 0, 99, b"x" * 100)])
    for name in (
        f"dstl/data/1-{RUN}/.1-9-5eed.log.abc.tmp",
        "dstl/epochs/1-5eed.trial",
        "commits/.7.abc.tmp",
        "state/0/0/12.zip",
    ):
        (written.root / name).write_bytes(b"x")
    written.epoch = 2
    written.claim()
    aged(written.root)
    return names(written.root) - before - {"dstl/epochs/2"}


def test_gc_deletes_the_leftovers_and_nothing_else(written: WrittenCheckpoint) -> None:
    left = left_behind(written)
    before = names(written.root)
    result = succeeded("gc", written.root)
    assert names(written.root) == before
    for name in left:
        assert f"would delete {written.root}/{name}: " in result.output
    document = json.loads(dstl("gc", str(written.root), "--dry-run", "--output", "json").output)
    assert len(document["objects"]) == len(left)
    succeeded("gc", written.root, "--apply")
    assert before - names(written.root) == left
    assert "Nothing is left over." in dstl("gc", str(written.root)).output


def test_gc_deletes_nothing_if_an_entry_cannot_be_read(written: WrittenCheckpoint) -> None:
    left_behind(written)
    (written.root / "commits/5").write_bytes((written.root / "commits/5").read_bytes()[:-1])
    aged(written.root)
    assert "commits/5 cannot be read, so it is unknown what it names" in ended(1, "gc", written.root, "--apply").output


@pytest.mark.parametrize("owner", [None, "{}", '{"query": "another"}', "garbage"])
def test_gc_deletes_nothing_in_a_base_path_without_the_mark_of_the_query(
    written: WrittenCheckpoint, tmp_path: Path, owner: str | None
) -> None:
    left_behind(written)
    (written.root / "dstl/data").rename(tmp_path / "data")
    written.entry(6, written.changes(6), base=f"file:{tmp_path}")
    aged(written.root)
    if owner is not None:
        (tmp_path / "owner.json").write_text(owner)
    with spark_dstl.open(str(written.root)) as checkpoint:
        with pytest.raises(DstlError, match="is not marked as the base path of query"):
            leftovers.find_leftovers(checkpoint)
        (tmp_path / "owner.json").write_text(json.dumps({"query": checkpoint.query, "checkpoint": "x"}))
        assert len(leftovers.find_leftovers(checkpoint).objects) == 5


def test_gc_of_a_copy_deletes_nothing_that_the_original_needs(written: WrittenCheckpoint, tmp_path: Path) -> None:
    left_behind(written)
    (written.root / "dstl/data").rename(tmp_path / "data")
    written.entry(6, written.changes(6), base=f"file:{tmp_path}")
    with spark_dstl.open(str(written.root)) as checkpoint:
        mark = json.dumps({"query": checkpoint.query, "checkpoint": f"file:{written.root}"})
    (tmp_path / "owner.json").write_text(mark)
    copy = aged(Path(shutil.copytree(written.root, tmp_path / "copy")))
    before = names(tmp_path)
    result = ended(1, "gc", copy, "--apply", "--stopped")
    assert f"of the checkpoint file:{written.root}, of which {copy} is a copy" in result.output
    assert names(tmp_path) == before
    # Without the original it is a checkpoint that has moved.
    shutil.rmtree(written.root)
    assert "5 of 5 objects" in dstl("gc", str(copy), "--apply", "--stopped").output


def test_gc_deletes_nothing_while_a_change_of_the_partitions_holds_its_lock(written: WrittenCheckpoint) -> None:
    left_behind(written)
    begun = max(int(path.name) for path in (written.root / "offsets").iterdir() if path.name.isdecimal())
    (written.root / f"offsets/{begun + 1}").write_bytes(lock_of(str(written.root), begun))
    before = names(aged(written.root))
    result = ended(1, "gc", written.root, "--apply", "--stopped")
    assert f"offsets/{begun + 1} is the lock of a change of the partitions" in result.output
    assert names(written.root) == before


def test_a_checkpoint_of_another_provider_is_not_rolled_back(written: WrittenCheckpoint) -> None:
    for entry in (written.root / "offsets").iterdir():
        entry.write_text(entry.read_text().replace("x.DstlStateStoreProvider", HDFS_BACKED))
    before = names(aged(written.root))
    result = ended(1, "rollback", written.root, "--to", "3", "--apply", "--stopped")
    assert "Convert the checkpoint first: dstl convert" in result.output
    assert names(written.root) == before
    assert f"files of {HDFS_BACKED} are not checked" in dstl("verify", str(written.root)).output


def test_rollback_and_gc_work_on_s3(written: WrittenCheckpoint, s3: Callable[[Path], str]) -> None:
    left_behind(written)
    uri = s3(written.root)
    ended(console.REFUSED, "rollback", uri, "--to", "3", "--apply")
    succeeded("rollback", uri, "--to", "3", "--apply", "--stopped")
    result = dstl("gc", uri, "--apply", "--stopped")
    # With batch 5 its data file has become a leftover.
    assert "5 of 5 objects" in result.output, result.output
    result = dstl("verify", uri)
    assert result.output.endswith("No damage found in what was read. The newest batch is 3.\n"), result.output
