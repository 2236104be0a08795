# SPDX-License-Identifier: Apache-2.0
"""Verification reads what a restart reads, and counts what it has not read."""

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from invoked import dstl, ended
from verified import HEADER, data, entry, flip, purge, ten_batches, verified
from written_checkpoint import CHECKSUM, RUN, Written, WrittenCheckpoint, aged

import spark_dstl
from spark_dstl.checkpoint.sparkfiles import MAX_OPERATOR
from spark_dstl.checkpoint.storage import TooLarge
from spark_dstl.checkpoint.verification import snapshots
from spark_dstl.checkpoint.verification.findings import Verification
from spark_dstl.checkpoint.verification.snapshots import NotASnapshot, contents
from spark_dstl.commands import console
from spark_dstl.errors import UnreadableStorage

SST_BYTES = 60  # of each store's snapshot, in a data file


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    return ten_batches(tmp_path / "q")


def test_a_flipped_byte_of_any_data_file_that_a_restart_replays_is_found(tmp_path: Path) -> None:
    checkpoint = WrittenCheckpoint(tmp_path / "q").begin()
    checkpoint.batches(range(10), large=range(10), snapshots=(4,))
    read = range(5, 10)
    files = {batch: data(checkpoint.root, batch + 1 + (batch > 4)) for batch in range(10)}
    for batch, file in files.items():
        flip(file, 30)
        found = verified(checkpoint.root)
        named = [one.object for one in found.damages]
        assert named == ([str(file)] if batch in read else []), batch
        assert found.newest_undamaged == (batch - 1 if batch in read else 9)
        assert found.unread["changelogs"] > 0
        flip(file, 30)
    for file in files.values():
        flip(file, 30)
    found = verified(checkpoint.root)
    # Of the batches before the snapshot nothing can be used, so no batch is undamaged.
    assert {one.object for one in found.damages} >= {str(files[batch]) for batch in read}
    assert found.newest_undamaged in (None, 4)
    ended(console.DAMAGED, "verify", checkpoint.root)


@pytest.mark.parametrize("name", ["commits/9", "commits/7", f"dstl/data/1-{RUN}/1-3-5eed.log", "offsets/9"])
def test_a_flipped_byte_anywhere_in_an_object_that_a_restart_reads_is_found(
    written: WrittenCheckpoint, name: str
) -> None:
    file = written.root / name
    for at in range(0, file.stat().st_size, 101):
        flip(file, at)
        assert str(file) in [one.object for one in verified(written.root).damages], at
        flip(file, at)


@pytest.mark.parametrize("batch", [5, 6, 8, 9])
def test_a_flipped_byte_in_the_body_of_an_entry_that_a_restart_reads_is_found(
    written: WrittenCheckpoint, batch: int
) -> None:
    """The changelogs of batch 7 are in a data file."""
    flip(entry(written.root, batch), HEADER + 30)
    found = verified(written.root)
    (damage,) = found.damages
    assert (damage.object, damage.offset) == (str(entry(written.root, batch)), HEADER + 24)
    assert damage.what == f"the 40 bytes of 0/0/{batch + 1}.changelog have another checksum"
    assert found.newest_undamaged == batch - 1
    output = dstl("verify", str(written.root)).output
    assert f"DAMAGED. The newest batch without damage in what was read is {batch - 1}, of 9." in output
    assert "intact" not in output.lower()


def test_damaged_checksums_of_a_changelog_lose_its_batch_because_spark_reads_them_first(tmp_path: Path) -> None:
    written = WrittenCheckpoint(tmp_path / "q").begin()
    for batch in range(3):
        checksums = [Written(0, of, batch + 1, b'{"algorithm":"CRC32C"}' * 2, kind=CHECKSUM) for of in range(2)]
        written.entry(batch, [*written.changes(batch), *checksums])
    aged(written.root)
    assert verified(written.root).newest_undamaged == 2
    flip(entry(written.root, 2), entry(written.root, 2).read_bytes().index(b"CRC32C"))
    assert verified(written.root).newest_undamaged == 1


def test_damage_below_the_snapshots_of_a_restart_is_found_with_deep_alone(written: WrittenCheckpoint) -> None:
    flip(entry(written.root, 2), HEADER + 30)
    found = verified(written.root)
    assert not found.is_damaged
    assert found.unread["changelogs"] == 2 * 40 * 4
    assert verified(written.root, deep=True).is_damaged


def test_the_batch_to_roll_back_to_is_read_as_well(written: WrittenCheckpoint) -> None:
    """Its changelogs are below the snapshot that a restart from the newest batch loads."""
    written.entry(6, written.changes(6)[:1])
    flip(entry(written.root, 5), HEADER + 30)
    flip(entry(written.root, 2), HEADER + 30)
    data(written.root, 2).unlink()
    found = verified(written.root)
    assert found.newest_undamaged == 1
    assert str(entry(written.root, 2)) in [one.object for one in found.damages]


def test_the_batch_that_a_rollback_names_is_read(written: WrittenCheckpoint) -> None:
    flip(entry(written.root, 2), HEADER + 30)
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert checkpoint.plan_rollback(1).to == 1
    result = ended(1, "rollback", written.root, "--to", "3")
    assert "cannot be rolled back to batch 3: state of 0/0: version 3: its bytes are damaged" in result.output


def test_what_was_not_read_is_counted_by_kind(written: WrittenCheckpoint) -> None:
    found = verified(written.root)
    # The zips are read for their lists of files; the entry of the snapshots is read whole.
    assert found.unread == {"changelogs": 2 * 40 * 4, "snapshots": 2 * SST_BYTES}
    assert found.counts.checked_bytes > 2 * 40 * 6
    output = dstl("verify", str(written.root)).output
    assert (
        "Not read: 320 B of changelogs that a restart does not need and 120 B of snapshots (--deep reads them)"
        in output
    )
    assert output.endswith("No damage found in what was read. The newest batch is 9.\n")
    document = json.loads(dstl("verify", str(written.root), "--output", "json").output)
    assert (document["damaged"], document["newest_undamaged"]) == (False, 9)
    assert document["unread"] == {"changelogs": 320, "snapshots": 120}
    deep = verified(written.root, deep=True)
    assert deep.unread == {}
    assert deep.counts.checked_bytes > found.counts.checked_bytes
    output = dstl("verify", str(written.root), "--deep").output
    assert "Not read" not in output
    assert output.endswith("Intact. The newest batch is 9.\n")


def test_reading_shows_its_progress(written: WrittenCheckpoint) -> None:
    shown: dict[str, tuple[int, int]] = {}
    with spark_dstl.open(str(written.root), progress=lambda what, done, of: shown.update({what: (done, of)})) as it:
        it.verify(deep=True)
    assert shown["Reading whole commit entries"] == (10, 10)
    assert shown["Reading data files"][0] == shown["Reading data files"][1] > 0


def metadata(operator: int, partitions: object = 2, schemas: str = "[]") -> str:
    store = f'"storeName":"default","numPartitions":{partitions},"stateSchemaFilePaths":{schemas}'
    info = f'"operatorId":{operator},"operatorName":"stateStoreSave"'
    return f'{{"operatorInfo":{{{info}}},"stateStoreInfo":[{{{store}}}]}}'


def write(name: str, text: str, root: Path) -> None:
    (root / name).write_text(f"v1\n{text}")


METADATA, SCHEMA = "state/0/_metadata/metadata", "state/0/0/_metadata/schema"
NOT_SPARKS = {
    METADATA: {
        "no JSON": "{x",
        "a number that is too large": metadata(2**63),
        "an endless number": metadata(0, "Infinity"),
        "a number in place of schemas": metadata(0, 2, "3"),
        "a list in place of a store": metadata(0, 2).replace("[{", "[[{").replace("}]", "}]]"),
        "a text in place of stores": metadata(0).partition("[{")[0] + '""}',
        "a text in place of schemas": metadata(0, 2, '"x"'),
        "the number of another operator": metadata(3),
        "no store": metadata(0).partition("[{")[0] + "[]}",
        "a list in place of a store's name": metadata(0).replace('"default"', '["default"]'),
        "a number in place of the operator's name": metadata(0).replace('"stateStoreSave"', "7"),
        "a text in place of columns": metadata(0).replace('"numP', '"numColsPrefixKey":"x","numP'),
    },
    "sources/0/0": {
        "no JSON": "{x",
        "a number as its path": '{"path":0,"timestamp":0,"batchId":0}',
        "a path without a scheme": '{"path":"/in","timestamp":0,"batchId":0}',
        "no time": '{"path":"file:///in","batchId":0}',
        "an endless time": '{"path":"file:///in","timestamp":Infinity,"batchId":0}',
        "a truth value as its batch": '{"path":"file:///in","timestamp":0,"batchId":true}',
        "another batch": '{"path":"file:///in","timestamp":0,"batchId":1}',
        "a time that is too large": f'{{"path":"file:///in","timestamp":{2**63},"batchId":0}}',
    },
}
SOURCES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "a missing file of a source": (lambda root: (root / "sources/0/0").unlink(), "sources/0/0", "it is missing"),
    "a missing directory": (lambda root: shutil.rmtree(root / "sources"), "sources/0/0", "it is missing"),
    "an empty one": (lambda root: (root / "sources/0/0").write_bytes(b""), "sources/0/0", "it is empty"),
    "no version": (lambda root: (root / "sources/0/0").write_text("x\n{}"), "sources/0/0", "not what Spark writes"),
    "no version in metadata": (lambda root: (root / METADATA).write_text("{}"), METADATA, "not what Spark writes"),
    "a schema": (lambda root: flip(root / SCHEMA, 11), SCHEMA, "not what Spark writes"),
    "metadata larger than is read": (
        lambda root: (root / METADATA).write_bytes(b"v1\n" + b"x" * MAX_OPERATOR), METADATA, "not what Spark writes",
    ),
    "a schema larger than is read": (
        lambda root: (root / SCHEMA).write_bytes(b"x" * (MAX_OPERATOR + 1)), SCHEMA, "not what Spark writes",
    ),
    "a cut schema": (
        lambda root: (root / SCHEMA).write_bytes(b"\0\2v2\0\0\0\1"), SCHEMA, "not what Spark writes",
    ),
    **{
        f"{name} with {what}": (partial(write, name, text), name, "not what Spark writes")
        for name, texts in NOT_SPARKS.items()
        for what, text in texts.items()
    },
}  # fmt: skip


@pytest.mark.parametrize(("damage", "name", "what"), SOURCES.values(), ids=SOURCES)
def test_damaged_metadata_of_sources_and_state_is_found(
    written: WrittenCheckpoint, damage: Callable[[Path], object], name: str, what: str
) -> None:
    damage(written.root)
    found = verified(written.root)
    assert [one.object for one in found.damages] == [str(written.root / name)]
    assert what in found.damages[0].what


@pytest.mark.parametrize(
    ("name", "newest"),
    [("sources/0/0", None), ("state/0/_metadata/v2/0", None), ("state/0/_metadata/metadata", 9)],
)
def test_without_what_spark_needs_to_start_no_batch_can_be_continued_from(
    written: WrittenCheckpoint, name: str, newest: int | None
) -> None:
    """Spark starts without an operator's metadata of the first version."""
    (written.root / name).parent.mkdir(exist_ok=True)
    (written.root / name).write_bytes(b"x")
    (written.root / "sources/0/1").write_text('v1\n{"path":"file:///in","timestamp":0,"batchId":1}')
    found = verified(written.root)
    assert found.newest_undamaged == newest
    assert found.in_the_way == []
    if newest is None:
        assert found.lost[9] == f"{name} is missing or damaged, and Spark does not start without it"
        assert dstl("verify", str(written.root)).output.endswith("from a backup or older object versions.\n")


@pytest.mark.parametrize("name", ["sources/0/1", "state/0/0/_metadata/schema"])
def test_what_a_start_writes_anew_can_be_deleted(written: WrittenCheckpoint, name: str) -> None:
    (written.root / name).write_bytes(b"x")
    found = verified(written.root)
    assert found.newest_undamaged is None
    assert found.in_the_way == [str(written.root / name)]
    assert dstl("verify", str(written.root)).output.endswith(f"and run dstl verify again:\n  {written.root / name}\n")
    (written.root / name).unlink()
    assert verified(written.root).damages == []


def test_schemas_that_metadata_names_must_exist(written: WrittenCheckpoint) -> None:
    # The oldest entry has a snapshot, which stores with column families need.
    purge(written.root, 4)
    schema = written.column_families()
    assert not verified(written.root).is_damaged
    schema.unlink()
    (damage,) = verified(written.root).damages
    assert (damage.object, damage.what) == (str(schema), "it is missing: state/0/_metadata/v2/0 names it")


def test_a_damaged_description_of_an_operator_loses_the_batches_that_read_it(written: WrittenCheckpoint) -> None:
    purge(written.root, 4)
    descriptions = written.column_families().parents[2] / "_metadata/v2"
    for batch in (6, 8):
        (descriptions / str(batch)).write_bytes((descriptions / "0").read_bytes())
    (descriptions / "6").write_bytes(b"x")
    found = verified(written.root)
    assert [one.object for one in found.damages] == [str(descriptions / "6")]
    assert sorted(found.lost) == [6, 7]
    assert found.newest_undamaged == 9
    (descriptions / "8").write_bytes(b"x")
    assert verified(written.root).newest_undamaged == 5


def test_the_descriptions_of_schemas_must_exist(written: WrittenCheckpoint) -> None:
    written.column_families()
    shutil.rmtree(written.root / "state/0/_metadata/v2")
    assert [Path(one.object).name for one in verified(written.root).damages] == ["v2"]


def left_over(written: WrittenCheckpoint) -> Verification:
    for _ in range(3):
        written.data_file([Written(0, 0, 99, b"x")])
    return verified(written.root)


def test_leftovers_are_summed_up_and_listed_on_demand(written: WrittenCheckpoint) -> None:
    found = left_over(written)
    assert len(found.leftovers) == 3
    sizes = sum(Path(one.object).stat().st_size for one in found.leftovers)
    assert found.leftover_bytes == sizes
    output = dstl("verify", str(written.root)).output
    assert f"left over: 3 objects, {sizes} B (--leftovers lists them)" in output
    assert output.count("left over") == 1
    listed = dstl("verify", str(written.root), "--leftovers").output
    assert all(f"left over: {one.object}: no commit entry names it" in listed for one in found.leftovers)
    document = json.loads(dstl("verify", str(written.root), "--output", "json").output)
    assert len(document["leftovers"]) == 3
    assert document["leftover_bytes"] == sizes


def test_a_purged_checkpoint_reads_the_entry_of_the_snapshots(written: WrittenCheckpoint) -> None:
    purge(written.root, 4)
    flip(entry(written.root, 4), HEADER + 30)
    found = verified(written.root)
    assert [one.object for one in found.damages] == [str(entry(written.root, 4))]


def test_a_damaged_name_in_the_zip_of_a_snapshot_is_damage() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("\u00e9", b"")
    with pytest.raises(NotASnapshot, match="not the zip of a snapshot"):
        contents(content.getvalue().replace("\u00e9".encode(), b"\xc3\x28"), deep=False)


@pytest.mark.parametrize(("error", "is_damage"), [(UnreadableStorage("no answer"), False), (TooLarge("large"), True)])
def test_storage_that_does_not_answer_is_no_damage_of_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: UnreadableStorage, is_damage: bool
) -> None:
    def fails(*_: object) -> None:
        raise error

    written = ten_batches(tmp_path)
    monkeypatch.setattr(snapshots, "contents", fails)
    if is_damage:
        assert {one.what.rpartition(" ")[2] for one in verified(written.root).damages} == {"large"}
    else:
        with pytest.raises(UnreadableStorage, match="no answer"):
            verified(written.root)
