# SPDX-License-Identifier: Apache-2.0
"""Which objects are leftovers, and when none is deleted; the commands are tested with the rollback."""

import json
import shutil
from pathlib import Path

import pytest
from invoked import dstl
from verified import verified
from written_checkpoint import Written, WrittenCheckpoint, aged, zip_of

import spark_dstl
from spark_dstl import QuerySeemsToRun
from spark_dstl.checkpoint.changing import leftovers
from spark_dstl.checkpoint.sparkfiles import OURS


def leave(written: WrittenCheckpoint) -> Path:
    """Write a data file that no entry names."""
    (place,) = written.data_file([Written(0, 0, 99, b"x" * 100)]).values()
    return written.root / "dstl" / place[0].file


def found(root: Path) -> list[str]:
    with spark_dstl.open(str(root)) as checkpoint:
        return [one.name for one in leftovers.find_leftovers(checkpoint).objects]


def test_none_is_deleted_if_a_batch_begins_during_the_look(written: WrittenCheckpoint) -> None:
    """Its data files may be among them."""

    def begin(_seconds: float) -> None:
        written.offsets(4)

    left = leave(written)
    aged(written.root)
    with spark_dstl.open(str(written.root)) as checkpoint:
        planned = leftovers.find_leftovers(checkpoint)
        with pytest.raises(QuerySeemsToRun, match="offsets/4 changed while this command looked"):
            leftovers.delete_leftovers(checkpoint, planned, stopped=True, wait=begin)
    assert left.exists()


def test_a_plain_snapshot_of_the_first_batch_is_one_until_the_batch_is_committed(tmp_path: Path) -> None:
    checkpoint = WrittenCheckpoint(tmp_path / "q", partitions=1).begin()
    checkpoint.offsets(0)
    (checkpoint.root / "state/0/0/1.zip").write_bytes(zip_of({}))
    assert found(checkpoint.root) == ["state/0/0/1.zip"]
    checkpoint.batch(0)
    assert found(checkpoint.root) == []


def test_unfinished_objects_of_the_state_are_leftovers_after_a_while(written: WrittenCheckpoint) -> None:
    """Until then an executor or a repartition may be writing them."""
    names = ["state/0/0/..6.zip.5eed.tmp.crc", "state/0/0/.6.zip.5eed.tmp"]
    (written.root / "state/0/0").mkdir(parents=True, exist_ok=True)
    for name in names:
        (written.root / name).touch()
    assert found(written.root) == []
    aged(written.root)
    assert sorted(found(written.root)) == names
    with spark_dstl.open(str(written.root)) as checkpoint:
        done = checkpoint.delete_leftovers(checkpoint.leftovers())
    assert (done.deleted, found(written.root)) == (2, [])


@pytest.mark.parametrize("name", ["5.zip", "5_5eed.zip", "9.zip"])
def test_plain_snapshots_above_the_log_are_leftovers_once_none_was_written_for_a_while(
    tmp_path: Path, name: str
) -> None:
    """Until then a repartition may be writing them, and may have begun long ago."""
    written = WrittenCheckpoint(tmp_path / "q", provider=OURS).begin().batches(range(4))
    first, last = written.root / "state/0/0/5.zip", written.root / "state/0/1" / name
    for snapshot in (first, last):
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_bytes(zip_of({}))
    aged(written.root)
    last.touch()
    assert found(written.root) == []
    assert verified(written.root).leftovers == []
    aged(written.root)
    assert found(written.root) == ["state/0/0/5.zip", f"state/0/1/{name}"]
    assert len(verified(written.root).leftovers) == 2
    told = dstl("gc", written.root, "--apply")
    assert (told.exit_code, "2 of 2 objects" in told.output) == (0, True), told.output
    assert not list(written.root.glob("state/0/*/*.zip"))
    assert (verified(written.root).is_damaged, verified(written.root).newest_undamaged) == (False, 3)


def test_the_checksum_files_of_a_snapshot_are_deleted_with_it(tmp_path: Path) -> None:
    """A later snapshot of the same name would not be readable with them."""
    checkpoint = WrittenCheckpoint(tmp_path / "q", partitions=1).begin()
    checkpoint.offsets(0)
    store = checkpoint.root / "state/0/0"
    for name in ("1.zip", ".1.zip.crc", "1.zip.crc", ".1.zip.crc.crc", ".2.zip.crc"):
        (store / name).write_bytes(zip_of({}))
    aged(checkpoint.root)
    with spark_dstl.open(str(checkpoint.root)) as opened:
        planned = opened.leftovers()
        assert opened.delete_leftovers(planned, stopped=True).deleted == len(planned.objects) == 1
    assert [path.name for path in store.iterdir() if "zip" in path.name] == [".2.zip.crc"]


@pytest.mark.parametrize("is_outer", [True, False])
def test_a_copy_inside_its_original_is_not_the_original(
    written: WrittenCheckpoint, tmp_path: Path, is_outer: bool
) -> None:
    leave(written)
    (written.root / "dstl/data").rename(tmp_path / "data")
    written.entry(3, written.changes(3), base=f"file:{tmp_path}")
    copy = Path(shutil.copytree(written.root, tmp_path / "copy"))
    copy = copy.rename(written.root / "copy")
    marked, other = (copy, written.root) if is_outer else (written.root, copy)
    with spark_dstl.open(str(other)) as checkpoint:
        (tmp_path / "owner.json").write_text(json.dumps({"query": checkpoint.query, "checkpoint": f"file:{marked}"}))
        with pytest.raises(spark_dstl.DstlError, match="is a copy"):
            leftovers.find_leftovers(checkpoint)


def test_a_checkpoint_under_another_name_is_no_copy_to_be_deleted(written: WrittenCheckpoint, tmp_path: Path) -> None:
    left = leave(written).name
    (written.root / "dstl/data").rename(tmp_path / "data")
    written.entry(3, written.changes(3), base=f"file:{tmp_path}")
    other = tmp_path / "link"
    other.symlink_to(written.root)
    with spark_dstl.open(str(other)) as checkpoint:
        mark = {"query": checkpoint.query, "checkpoint": f"file:{written.root}"}
        (tmp_path / "owner.json").write_text(json.dumps(mark))
    assert [Path(name).name for name in found(other)] == [left]


@pytest.mark.parametrize("mark", [{}, {"checkpoint": None}])
def test_a_base_path_whose_mark_names_the_query_alone_is_its_own(
    written: WrittenCheckpoint, tmp_path: Path, mark: dict[str, None]
) -> None:
    left = leave(written).name
    (written.root / "dstl/data").rename(tmp_path / "data")
    written.entry(3, written.changes(3), base=f"file:{tmp_path}")
    with spark_dstl.open(str(written.root)) as checkpoint:
        (tmp_path / "owner.json").write_text(json.dumps({"query": checkpoint.query, **mark}))
    assert [Path(name).name for name in found(written.root)] == [left]
