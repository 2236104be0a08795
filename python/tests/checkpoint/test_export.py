# SPDX-License-Identifier: Apache-2.0
"""An export has what its batches need, and nothing that is damaged; tests/tools/test_export.py continues from some."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from invoked import dstl
from verified import HEADER, data, entry, flip, purge, ten_batches, verified
from written_checkpoint import WrittenCheckpoint, aged, zip_of

import spark_dstl
from spark_dstl import CannotExport, QuerySeemsToRun
from spark_dstl.checkpoint import sparkfiles
from spark_dstl.checkpoint.export import export
from spark_dstl.checkpoint.export.export import Exported
from spark_dstl.checkpoint.export.target import Planned, Target, copies
from spark_dstl.checkpoint.storage import Storage, StoredObject
from spark_dstl.checkpoint.survey import numbered
from spark_dstl.errors import MissingLogObject


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    return ten_batches(tmp_path / "q")


def exported(root: Path, target: Path) -> Exported:
    """Export a checkpoint; the new one has no damage, and its batches can be rebuilt."""
    with spark_dstl.open(str(root)) as checkpoint:
        done = checkpoint.export(str(target), stopped=True)
    found = verified(target, deep=True)
    assert (found.damages, found.lost, found.newest_undamaged) == ([], {}, done.newest)
    return done


def names(target: Path, directory: str) -> list[str]:
    return sorted(path.name for path in (target / directory).iterdir() if path.is_file())


def test_a_begun_batch_whose_offsets_are_damaged_is_left_out(written: WrittenCheckpoint, tmp_path: Path) -> None:
    (written.root / "offsets/10").write_bytes(b"")
    target = tmp_path / "target"
    done = exported(written.root, target)
    assert (done.batches, done.left_out) == ([*range(10)], {10: "offsets/10 is damaged"})
    assert names(target, "offsets") == [str(batch) for batch in range(10)]
    aged(written.root)
    again = dstl("export", written.root, target, "--stopped")
    assert "left out batch 10, which the query runs again: offsets/10 is damaged" in again.output


def test_a_begun_batch_is_exported_with_its_metadata_of_operators(written: WrittenCheckpoint, tmp_path: Path) -> None:
    descriptions = written.column_families().parents[2] / "_metadata/v2"
    (descriptions / "10").write_bytes((descriptions / "0").read_bytes())
    for batch in range(4):
        (written.root / f"offsets/{batch}").unlink()
    written.offsets(10)
    done = exported(written.root, tmp_path / "target")
    assert (done.left_out, done.begun) == ({}, 10)
    assert "10" in names(tmp_path / "target", "offsets")
    assert names(tmp_path / "target", "state/0/_metadata/v2") == ["0", "10"]
    # Stock Spark has no state of a batch that its sink skips.
    again = dstl("export", written.root, tmp_path / "target", "--stopped")
    assert "Batch 10 was begun and is not committed: it runs again. If its sink has its output" in again.output
    (descriptions / "10").write_bytes(b"x")
    done = exported(written.root, tmp_path / "other")
    assert list(done.left_out) == [10]
    assert "10" not in names(tmp_path / "other", "offsets")
    assert names(tmp_path / "other", "state/0/_metadata/v2") == ["0"]


def test_the_schemas_of_operators_are_named_where_the_export_is(written: WrittenCheckpoint, tmp_path: Path) -> None:
    """Spark reads them at the places that the metadata names."""
    schema = written.column_families()
    descriptions = schema.parents[2] / "_metadata/v2"
    # Hadoop's checksum of other bytes would make the file unreadable.
    (descriptions / ".0.crc").write_bytes(b"crc")
    target = tmp_path / "target"
    exported(written.root, target)
    version, _, line = (target / "state/0/_metadata/v2/0").read_text().partition("\n")
    original = json.loads((descriptions / "0").read_text().partition("\n")[2])
    assert str(written.root) in str(original)
    original["stateStoreInfo"][0]["stateSchemaFilePaths"] = [f"file:{target}/state/0/_stateSchema/default/0_x"]
    assert (version, json.loads(line)) == ("v2", original)
    assert not (target / "state/0/_metadata/v2/.0.crc").exists()


@pytest.mark.parametrize(
    ("old", "target", "new"),
    [
        ("hdfs://nn/a/state/b", "/x y", "file:/x y"),
        ("s3://a/state/b", "s3a://c/d", "s3://c/d"),
        ("s3a://a/b", "s3://c", "s3a://c"),
        ("file:/a", "s3://c", "s3a://c"),
        ("abfs://a@b/c", "abfs://a@b/d", "abfs://a@b/d"),
    ],
)
def test_the_place_of_a_schema_has_the_scheme_that_the_query_uses(old: str, target: str, new: str) -> None:
    described = {"stateStoreInfo": [{"stateSchemaFilePaths": [f"{old}/state/3/_stateSchema/s/1_x"]}, {}]}
    content = b"v2\n" + json.dumps(described).encode()
    found = json.loads(sparkfiles.moved(content, target).partition(b"\n")[2])
    assert found == {"stateStoreInfo": [{"stateSchemaFilePaths": [f"{new}/state/3/_stateSchema/s/1_x"]}, {}]}
    for other in (b"v1\n{}", b"v2\nx", b'v2\n{"stateStoreInfo":[1]}'):
        assert sparkfiles.moved(other, target) == other


@pytest.mark.parametrize("is_missing", [True, False])
def test_batches_that_cannot_be_rebuilt_are_left_out_with_what_they_alone_need(
    written: WrittenCheckpoint, tmp_path: Path, is_missing: bool
) -> None:
    """The snapshot of batch 4 rebuilds the later ones."""
    if is_missing:
        data(written.root, 1).unlink()
    else:
        flip(entry(written.root, 3), -70)
    target = tmp_path / "target"
    done = exported(written.root, target)
    assert (done.batches, list(done.left_out)) == ([*range(4, 10)], [3])
    assert names(target, "state/0/0") == [
        "10.changelog",
        "5.zip",
        *(f"{version}.changelog" for version in range(6, 10)),
    ]
    # Spark reads the offsets of the batch before as well.
    assert names(target, "offsets") == [str(batch) for batch in range(3, 10)]


def test_batches_before_a_missing_one_are_left_out(written: WrittenCheckpoint, tmp_path: Path) -> None:
    """Spark expects no gaps."""
    entry(written.root, 3).unlink()
    assert exported(written.root, tmp_path / "target").batches == [*range(4, 10)]
    assert names(tmp_path / "target", "commits") == [str(batch) for batch in range(4, 10)]


def test_damage_that_only_an_old_batch_reads_does_not_end_an_export(written: WrittenCheckpoint, tmp_path: Path) -> None:
    flip(entry(written.root, 2), HEADER + 30)
    done = exported(written.root, tmp_path / "target")
    assert (done.batches, list(done.left_out)) == ([*range(4, 10)], [2, 3])


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_snapshot_that_cannot_be_loaded_is_left_out(
    written: WrittenCheckpoint, tmp_path: Path, is_missing: bool
) -> None:
    """Changelogs rebuild all batches, and stock Spark would load the snapshot."""
    file = data(written.root, 2)
    if is_missing:
        file.unlink()
    else:
        # Of the store 0/0 alone.
        flip(file, 30)
    done = exported(written.root, tmp_path / "target")
    assert (done.batches, done.left_out) == ([*range(10)], {})
    assert "5.zip" not in names(tmp_path / "target", "state/0/0")
    assert ("5.zip" in names(tmp_path / "target", "state/0/1")) != is_missing


def test_the_newest_batch_alone_is_exported_with_the_offsets_before_it(tmp_path: Path) -> None:
    written = WrittenCheckpoint(tmp_path / "q").begin().batches(range(3), large=(1,), snapshots=(2,))
    data(written.root, 1).unlink()
    done = exported(aged(written.root), tmp_path / "target")
    assert (done.batches, list(done.left_out)) == ([2], [1])
    assert (names(tmp_path / "target", "offsets"), names(tmp_path / "target", "commits")) == (["1", "2"], ["2"])


def test_plain_snapshots_that_are_no_state_of_a_committed_batch_are_left_out(
    written: WrittenCheckpoint, tmp_path: Path
) -> None:
    """Stock Spark would load them after the batch of that number."""
    store = written.root / "state/0/0"
    for name, content in (("12.zip", zip_of({})), ("12.zip.crc", b"{}"), (".12.zip.crc", b"crc")):
        (store / name).write_bytes(content)
    (store / "13.zip").write_bytes(zip_of({}))
    (store / "1.zip").write_bytes(b"damaged")
    target = tmp_path / "target"
    exported(aged(written.root), target)
    assert [name for name in names(target, "state/0/0") if "zip" in name] == ["5.zip"]


def test_a_plain_snapshot_that_batches_are_rebuilt_from_is_copied(tmp_path: Path) -> None:
    written = WrittenCheckpoint(tmp_path / "q", partitions=1).begin().batches(range(6))
    (written.root / "state/0/0/3.zip").write_bytes(zip_of({}))
    purge(written.root, 2)
    done = exported(aged(written.root), tmp_path / "target")
    assert (done.batches, done.left_out) == ([2, 3, 4, 5], {})
    assert names(tmp_path / "target", "state/0/0") == ["3.zip", "4.changelog", "5.changelog", "6.changelog"]


def contents(target: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}


def test_a_repeated_export_rewrites_only_damaged_objects(written: WrittenCheckpoint, tmp_path: Path) -> None:
    target = tmp_path / "target"
    first = exported(written.root, target)
    whole = contents(target)
    changelog, *others = sorted(target.rglob("*.changelog"))
    changelog.write_bytes(b"\xff" * changelog.stat().st_size)
    others[0].write_bytes(b"too short")
    (target / "metadata").unlink()
    again = exported(written.root, target)
    assert contents(target) == whole
    assert again.written == 2
    assert again.kept == first.written - 2


@pytest.mark.parametrize("length", [0, 7])
def test_an_export_that_was_killed_during_its_last_write_can_be_repeated(
    written: WrittenCheckpoint, tmp_path: Path, length: int
) -> None:
    target = tmp_path / "target"
    exported(written.root, target)
    whole = contents(target)
    (target / "metadata").write_bytes(whole[target / "metadata"][:length])
    assert exported(written.root, target).written == 1
    assert contents(target) == whole
    (target / "metadata").write_bytes(b"theirs")
    with spark_dstl.open(str(written.root)) as checkpoint, pytest.raises(CannotExport, match="has metadata, which"):
        checkpoint.export(str(target), stopped=True)


def test_an_export_overwrites_no_foreign_objects(written: WrittenCheckpoint, tmp_path: Path) -> None:
    theirs = tmp_path / "target/state/theirs"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    with spark_dstl.open(str(written.root)) as checkpoint:
        with pytest.raises(CannotExport, match="state/theirs"):
            checkpoint.export(str(tmp_path / "target"), stopped=True)
        with pytest.raises(CannotExport, match="not apart"):
            checkpoint.export(str(written.root / "inside"), stopped=True)
    assert list(contents(tmp_path / "target")) == [theirs]


@pytest.mark.parametrize("directory", ["offsets", "commits"])
def test_an_export_fails_when_a_query_deletes_what_it_has_listed(
    written: WrittenCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str
) -> None:
    def listed_and_deleted(objects: list[StoredObject]) -> dict[int, StoredObject]:
        (written.root / directory / "0").unlink()
        return numbered(objects)

    monkeypatch.setattr(export, "numbered", listed_and_deleted)
    with (
        spark_dstl.open(str(written.root)) as checkpoint,
        pytest.raises(MissingLogObject, match=rf"{directory}/0 was deleted: a query runs on the checkpoint"),
    ):
        checkpoint.export(str(tmp_path / "target"), stopped=True)
    assert not (tmp_path / "target/offsets").exists()


def during_the_export(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let a query that was not noticed change its checkpoint, after all objects were read once, and without a pin."""

    def without_a_pin(*_: object) -> None:
        change()

    monkeypatch.setattr(export, "pin_if_possible", without_a_pin)


@pytest.mark.parametrize("name", ["offsets/0", "commits/4", "metadata"])
def test_an_export_fails_when_a_query_deletes_what_was_read_before(
    written: WrittenCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The entry of batch 4 has a snapshot from which later batches are rebuilt."""
    if name == "commits/4":
        for batch in range(8):
            (written.root / f"offsets/{batch}").unlink()
    during_the_export(monkeypatch, (written.root / name).unlink)
    with (
        spark_dstl.open(str(written.root)) as checkpoint,
        pytest.raises(MissingLogObject, match=rf"{name} was deleted: a query runs on the checkpoint"),
    ):
        checkpoint.export(str(tmp_path / "target"), stopped=True)
    assert not (tmp_path / "target").exists()


def test_an_export_fails_when_a_query_deletes_the_metadata_of_an_operator(
    written: WrittenCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = written.column_families().parents[2] / "_metadata/v2/0"

    def listed_and_deleted(storage: Storage, directory: str) -> Iterator[Planned]:
        listed = list(copies(storage, directory))
        described.unlink(missing_ok=True)
        yield from listed

    monkeypatch.setattr(export, "copies", listed_and_deleted)
    with spark_dstl.open(str(written.root)) as checkpoint, pytest.raises(MissingLogObject, match="v2/0 was deleted"):
        checkpoint.export(str(tmp_path / "target"), stopped=True)


def test_a_plain_snapshot_that_is_written_during_the_export_is_left_out(
    written: WrittenCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors write some for a time after the end of a query."""

    def maintenance() -> None:
        for name in ("12.zip", ".12.zip.crc"):
            (written.root / "state/0/0" / name).write_bytes(zip_of({}))

    during_the_export(monkeypatch, maintenance)
    exported(written.root, tmp_path / "target")
    assert [name for name in names(tmp_path / "target", "state/0/0") if "zip" in name] == ["5.zip"]


def test_an_export_is_refused_at_its_end_if_a_batch_was_committed_meanwhile(
    written: WrittenCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both checkpoints would run that batch."""
    during_the_export(monkeypatch, lambda: written.batch(10))
    with (
        spark_dstl.open(str(written.root)) as checkpoint,
        pytest.raises(QuerySeemsToRun, match="its newest batch is 10 and was 9"),
    ):
        checkpoint.export(str(tmp_path / "target"), stopped=True)
    assert not (tmp_path / "target/metadata").exists()


def test_an_export_that_is_killed_before_it_has_compared_all_leaves_no_usable_checkpoint(
    written: WrittenCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier one may have left objects in full length with other bytes."""

    def killed(_target: Target, _planned: Planned) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Target, "has", killed)
    with spark_dstl.open(str(written.root)) as checkpoint, pytest.raises(KeyboardInterrupt):
        checkpoint.export(str(tmp_path / "target"), stopped=True)
    assert (tmp_path / "target/commits").exists()
    assert not (tmp_path / "target/metadata").exists()


def test_a_damaged_checkpoint_is_not_exported(written: WrittenCheckpoint, tmp_path: Path) -> None:
    flip(entry(written.root, 9), -70)
    with spark_dstl.open(str(written.root)) as checkpoint, pytest.raises(CannotExport, match="cannot be rebuilt"):
        checkpoint.export(str(tmp_path / "target"), stopped=True)
    assert not (tmp_path / "target").exists()
