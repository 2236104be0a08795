# SPDX-License-Identifier: Apache-2.0
"""`dstl convert` refuses checkpoints and targets without a Java process; tests/test_convert.py converts."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from invoked import dstl, ended
from plain_checkpoint import PlainCheckpoint
from written_checkpoint import aged

import spark_dstl
from spark_dstl import CannotConvert, Checkpoint
from spark_dstl.checkpoint.convert import conversion, point
from spark_dstl.checkpoint.convert.conversion import NOTE, note_of
from spark_dstl.checkpoint.convert.stores import NamedStores
from spark_dstl.checkpoint.sparkfiles import HDFS_BACKED, OURS, PROVIDER, STOCKS
from spark_dstl.errors import MissingLogObject

ROCKSDB_FORMAT = "spark.sql.streaming.stateStore.rocksdb.formatVersion"


@pytest.fixture
def written(tmp_path: Path) -> PlainCheckpoint:
    return PlainCheckpoint(tmp_path / "q", HDFS_BACKED)


def refusal(written: PlainCheckpoint, target: Path | None = None) -> str:
    """Return the output of a refused command, after checking that it has written nothing."""
    before = sorted(written.root.parent.rglob("*"))
    chosen = target or written.root.parent / "target"
    result = ended(1, "convert", written.root, chosen, "--stopped")
    assert "Traceback" not in result.output
    assert sorted(written.root.parent.rglob("*")) == before
    dry = dstl("convert", written.root, chosen, "--dry-run")
    assert dry.output == result.output
    return result.output


def found(written: PlainCheckpoint) -> point.Point:
    with spark_dstl.open(str(written.root)) as checkpoint:
        return point.find_point(checkpoint)


def test_a_conversion_continues_after_the_newest_committed_batch(written: PlainCheckpoint) -> None:
    at = found(written)
    assert (at.batch, at.begun, [one.batch for one in at.offsets]) == (2, None, [1, 2])


def test_a_batch_that_was_begun_is_noted(written: PlainCheckpoint) -> None:
    written.offsets(3)
    at = found(written)
    assert (at.batch, at.begun, [one.batch for one in at.offsets]) == (2, 3, [2, 3])


def test_the_first_batch_has_none_before_it(written: PlainCheckpoint) -> None:
    written.remove("offsets/1", "offsets/2", "commits/1", "commits/2")
    assert [one.batch for one in found(written).offsets] == [0]


def test_a_conversion_changes_only_the_pinned_provider(written: PlainCheckpoint) -> None:
    written.offsets(2, name="ü")
    before = found(written).committed
    content = before.content(before.converted())
    version, line, rest = content.decode().split("\n")
    assert (version, rest) == ("v1", '{"logOffset":2}')
    assert json.loads(line) == {
        "batchWatermarkMs": 0,
        "conf": {
            PROVIDER: OURS,
            "spark.sql.shuffle.partitions": "2",
            "name": "ü",
            ROCKSDB_FORMAT: "5",
        },
    }
    written.offsets(2, **{ROCKSDB_FORMAT: "4"})
    assert found(written).committed.converted()["conf"][ROCKSDB_FORMAT] == "4"


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        (STOCKS, "is of Spark's RocksDB provider, which needs no conversion: set the file manager"),
        (OURS, "has its state in the log already"),
        ("com.example.Provider", "is of the provider com.example.Provider; only that of Spark's default"),
        (None, "does not name a state store provider: run a batch with Spark 4.2 first"),
        (["damaged"], "is of the provider ['damaged']; only that of Spark's default"),
        ([], "is of the provider []; only that of Spark's default"),
    ],
)
def test_other_providers_are_refused_with_what_to_do_instead(
    written: PlainCheckpoint, provider: Any, words: str
) -> None:
    written.offsets(2, **{PROVIDER: provider})
    assert words in refusal(written)


@pytest.mark.parametrize("name", ["transformWithStateExec", "transformWithStateInPySparkExec", "somethingNew"])
def test_other_operators_are_refused_by_name(written: PlainCheckpoint, name: str) -> None:
    written.operator(1, name)
    assert f"operator 1 of {written.root} is {name}, whose state cannot be converted" in refusal(written)


def test_without_committed_state_there_is_nothing_to_convert(written: PlainCheckpoint) -> None:
    written.remove("commits/0", "commits/1", "commits/2", "offsets/1", "offsets/2")
    assert "no batch of" in (output := refusal(written))
    assert "let it finish batch 0" in output
    written.remove("offsets/0")
    assert "was begun: start the query with the log on" in refusal(written)


def test_a_query_without_state_is_refused(written: PlainCheckpoint) -> None:
    shutil.rmtree(written.root / "state")
    assert "has no state: the query has no stateful operator" in refusal(written)


def test_entries_that_do_not_follow_each_other_are_refused(written: PlainCheckpoint) -> None:
    written.offsets(4)
    assert "the newest batch in commits/ is 2, in offsets/ 4" in refusal(written)
    written.remove("offsets/4", "offsets/1")
    assert "offsets/1 is missing, without which Spark does not start" in refusal(written)
    written.offsets(1)
    written.remove("offsets/2")
    assert "the newest batch in commits/ is 2, in offsets/ 1" in refusal(written)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("offsets/2", "v3\n{}\n", "offsets/2 begins with 'v3', which is no version that Spark 4.2 writes"),
        ("offsets/2", "v1\n\n{}", "offsets/2 is damaged, or of a Spark before 2.1"),
        ("offsets/1", "v1\n{cut", "offsets/1 is damaged"),
        ("commits/2", "v1\n{cut", "commits/2 is damaged"),
        ("commits/2", "v4\n{}", "commits/2 has version 'v4', with checkpoint ids or of a later Spark"),
        ("commits/2", 'v3\n{"stateUniqueIds":{"0":[["id"]]}}', "commits/2 has version 'v3', with checkpoint ids"),
        ("commits/2", "no version", "commits/2 is damaged at offset 0: it does not begin with Spark's version line"),
    ],
)
def test_damaged_offsets_and_entries_are_refused(written: PlainCheckpoint, name: str, content: str, words: str) -> None:
    written.put(name, content)
    assert words in refusal(written)


def test_operators_without_metadata_are_refused(written: PlainCheckpoint) -> None:
    written.put("state/1/0/1.delta", "")
    assert "state/1/_metadata/metadata is missing, or cannot be read: Spark writes it since 4.0" in refusal(written)
    written.put("state/1/_metadata/metadata", "v1\ncut")
    assert "cannot be read" in refusal(written)


def test_a_store_name_that_leads_out_of_its_directory_is_refused(written: PlainCheckpoint) -> None:
    written.operator(0, "symmetricHashJoin", "../../../elsewhere")
    assert "state/0/_metadata/metadata is damaged: it names a store that is no directory" in refusal(written)


def test_partitions_that_are_missing_or_too_many_are_refused(written: PlainCheckpoint) -> None:
    assert [one.partitions for one in stores(written)] == [2]
    (written.root / "state/0/1/3.delta").unlink()
    (written.root / "state/0/1").rmdir()
    assert "state/0/1 is missing: operator 0 (stateStoreSave) has 2 partitions" in refusal(written)
    written.put("state/0/1/3.delta", "")
    written.put("state/0/2/3.delta", "")
    assert "state/0/2 should not be there" in refusal(written)


def stores(written: PlainCheckpoint) -> list[NamedStores]:
    with spark_dstl.open(str(written.root)) as checkpoint:
        return checkpoint.plan_conversion(str(written.root.parent / "target")).stores


def test_an_uncommitted_batch_whose_tasks_have_ended_is_refused(written: PlainCheckpoint) -> None:
    written.offsets(3)
    written.put("state/0/0/4.delta", "")
    assert [one.operator for one in stores(written)] == [0]
    written.put("state/0/1/4.delta", "")
    assert "all tasks of batch 3 of" in (output := refusal(written))
    assert "Start the query as it is until the batch is committed" in output
    written.put("commits/3", "v1\n{}")
    assert [one.operator for one in stores(written)] == [0]


def test_a_query_that_seems_to_run_is_refused(written: PlainCheckpoint, tmp_path: Path) -> None:
    assert "a query seems to run" in ended(4, "convert", written.root, tmp_path / "target").output
    assert not (tmp_path / "target").exists()


def test_objects_at_the_target_are_never_overwritten(written: PlainCheckpoint, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "theirs").write_text("theirs")
    assert f"{target} is not empty: it has theirs, and no {NOTE}" in refusal(written, target)
    with spark_dstl.open(str(written.root)) as checkpoint:
        note = note_of(checkpoint, found(written))
    (target / "dstl").mkdir()
    (target / NOTE).write_bytes(note)
    assert f"{target} has theirs, which does not come from this conversion" in refusal(written, target)
    (target / "theirs").unlink()
    (target / NOTE).write_bytes(note.replace(b'"batch": 2', b'"batch": 1'))
    assert "is of another conversion, or of this query at another batch than now: 2" in refusal(written, target)


@pytest.mark.parametrize("length", [0, 7])
def test_a_conversion_that_was_killed_during_its_first_write_can_be_repeated(
    written: PlainCheckpoint, tmp_path: Path, length: int
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        note = tmp_path / "target" / NOTE
        note.parent.mkdir(parents=True)
        note.write_bytes(note_of(checkpoint, found(written))[:length])
        assert checkpoint.plan_conversion(str(tmp_path / "target")).batch == 2


def test_a_target_that_a_query_has_continued_is_refused(written: PlainCheckpoint, tmp_path: Path) -> None:
    target = tmp_path / "target"
    with spark_dstl.open(str(written.root)) as checkpoint:
        note = note_of(checkpoint, found(written))
    for name, content in ((NOTE, note), ("offsets/3", b"v1"), ("state/0/0/3.zip", b"")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)
    assert "has offsets/3, which does not come from this conversion: a query has continued it" in refusal(
        written, target
    )


def test_a_checkpoint_whose_metadata_is_deleted_is_not_converted(written: PlainCheckpoint, tmp_path: Path) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        written.remove("metadata")
        with pytest.raises(MissingLogObject, match="metadata was deleted"):
            checkpoint.convert(str(tmp_path / "target"), stopped=True)
    assert not (tmp_path / "target").exists()


def test_source_and_target_must_be_apart(written: PlainCheckpoint) -> None:
    assert "are not apart" in refusal(written, written.root / "inside")
    assert "are not apart" in refusal(written, written.root.parent)
    assert "are not apart" in refusal(written, written.root)


def test_a_target_that_cannot_be_written_is_named(written: PlainCheckpoint, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    aged(written.root)
    result = ended(1, "convert", written.root, tmp_path / "file" / "target")
    assert f"{tmp_path}/file/target/{NOTE} could not be written" in result.output


def test_a_checkpoint_that_changes_during_the_conversion_gets_no_metadata(
    written: PlainCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Running:
        """A conversion during which the query begins a batch."""

        def __init__(self, *_: object) -> None:
            written.offsets(3)

        def convert(self, named: list[NamedStores]) -> tuple[list[NamedStores], int]:
            return named, 0

    monkeypatch.setattr(Checkpoint, "gateway", lambda _self: None)
    monkeypatch.setattr(conversion, "StoreConversion", Running)
    result = ended(4, "convert", written.root, tmp_path / "target", "--stopped")
    assert "has changed during the conversion" in result.output
    assert not (tmp_path / "target/metadata").exists()


@pytest.mark.parametrize("options", [["--dry-run"], ["--stopped"]])
def test_a_spark_that_cannot_write_states_is_refused(
    written: PlainCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "spark-core_2.13-4.1.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(jars.parent))
    result = ended(1, "convert", written.root, tmp_path / "target", *options)
    assert "Spark 4.1, which is installed here, cannot write a state" in result.output
    assert "(4.2, 4.3)" in result.output
    assert not (tmp_path / "target").exists()


def test_errors_can_be_caught_by_name(written: PlainCheckpoint) -> None:
    written.offsets(2, **{PROVIDER: STOCKS})
    with spark_dstl.open(str(written.root)) as checkpoint, pytest.raises(CannotConvert):
        checkpoint.plan_conversion(str(written.root.parent / "target"))
