# SPDX-License-Identifier: Apache-2.0
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from written_checkpoint import RUN, Held, Listed, Written, WrittenCheckpoint, zip_of

import spark_dstl
from spark_dstl import CheckpointNotFound, DamagedLog, JvmOptions, MissingPackage, StorageOptions
from spark_dstl.checkpoint import tables
from spark_dstl.checkpoint.checkpoint import find_checkpoints
from spark_dstl.checkpoint.java.gateway import Gateway


class FakeProcess:
    def __init__(self, _options: object) -> None:
        self.is_running = True

    def close(self) -> None:
        self.is_running = False


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[FakeProcess]:
    """The Java processes that are started."""
    started: list[FakeProcess] = []

    def start(options: object) -> FakeProcess:
        started.append(FakeProcess(options))
        return started[-1]

    monkeypatch.setattr("spark_dstl.checkpoint.java.gateway.Gateway", start)
    return started


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    """Batches 0 and 1 by stock Spark, 2 to 6 in the log: 3 large, and 4 with a snapshot of each of the two stores."""
    checkpoint = WrittenCheckpoint(tmp_path / "q").begin()
    for batch in (0, 1):
        checkpoint.plain_entry(batch)
    checkpoint.batch(2)
    checkpoint.batch(3, large=True)
    checkpoint.batch(4, snapshots=True)
    checkpoint.batch(5)
    checkpoint.batch(6)
    checkpoint.offsets(7)
    return checkpoint


@pytest.fixture(params=["local", "s3"])
def path(request: pytest.FixtureRequest, written: WrittenCheckpoint, s3: Callable[[Path], str]) -> str:
    return str(written.root) if request.param == "local" else s3(written.root)


def test_tables_have_rows_of_the_log_and_of_plain_files(path: str) -> None:
    with spark_dstl.open(path) as checkpoint:
        stores = checkpoint.stores().to_pylist()
        versions = {row["version"]: row for row in checkpoint.versions().to_pylist()}
        snapshots = checkpoint.snapshots().to_pylist()
        assert checkpoint.operators().to_pylist() == [
            {"operator": 0, "operator_name": "stateStoreSave", "store": "", "partitions": 2}
        ]
        assert checkpoint.claims().to_pylist()[0]["host"] == "driver.example"
    assert [(row["operator"], row["partition"]) for row in stores] == [(0, 0), (0, 1)]
    first = stores[0]
    assert (first["log_changelogs"], first["plain_changelogs"], first["log_snapshots"]) == (5, 2, 1)
    assert (first["version"], first["snapshot"], first["replay_changelogs"], first["replay_bytes"]) == (7, 5, 2, 80)
    assert (versions[1]["plain_changelogs"], versions[1]["log_changelogs"]) == (2, 0)
    assert (versions[3]["plain_changelogs"], versions[3]["log_changelogs"]) == (0, 2)
    assert versions[7]["retained"]
    assert {(row["version"], row["place"], row["batch"], row["files"]) for row in snapshots} == {(5, "log", 4, 1)}


def test_entries_and_segments_are_streams_of_batches(path: str) -> None:
    with spark_dstl.open(path) as checkpoint:
        entries = checkpoint.entries().read_all().to_pylist()
        segments = checkpoint.segments().read_all().to_pylist()
        assert checkpoint.segments(4).read_all().num_rows == 6
        assert checkpoint.entries(4).read_all().to_pylist() == [entries[4]]
    assert [row["batch"] for row in entries] == list(range(7))
    assert [row["has_log"] for row in entries] == [False] * 2 + [True] * 5
    assert entries[3]["data_files"] == 1
    assert (entries[3]["inline_bytes"], entries[3]["data_file_bytes"]) == (0, 80)
    assert (entries[4]["snapshots"], entries[4]["run"], entries[4]["epoch"]) == (2, RUN, 1)
    assert len(segments) == 2 * 5 + 4
    assert {row["kind"] for row in segments} == {"changelog", "snapshot", "snapshot file"}


def test_a_stream_holds_few_entries_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = WrittenCheckpoint(tmp_path / "long", partitions=20).begin().batches(range(200))
    monkeypatch.setattr(tables, "ROWS_IN_BATCH", 100)
    done = []
    with spark_dstl.open(str(written.root), progress=lambda _what, now, _of: done.append(now)) as checkpoint:
        reader = checkpoint.segments()
        assert reader.read_next_batch().num_rows == 100
        assert done[-1] < 60
        assert sum(batch.num_rows for batch in reader) == 20 * 200 - 100


def test_each_object_has_its_kind(path: str) -> None:
    with spark_dstl.open(path) as checkpoint:
        kinds = {row["name"]: row["kind"] for row in checkpoint.objects().read_all().to_pylist()}
    assert kinds["commits/3"] == "commit entry"
    assert kinds["state/0/1/2.changelog"] == "changelog"
    assert kinds["dstl/epochs/1"] == "claim"
    assert kinds[f"dstl/data/1-{RUN}/1-1-5eed.log"] == "data file"
    assert "other" not in kinds.values()


def test_the_summary_has_the_newest_claim_and_the_reads_of_a_restart(path: str) -> None:
    with spark_dstl.open(path) as checkpoint:
        summary = checkpoint.summary()
    assert (summary.claim_epoch, summary.claim_run, summary.claim_host) == (1, RUN, "driver.example")
    assert (summary.committed_epoch, summary.committed_run, summary.committed_host) == (1, RUN, "driver.example")
    assert (summary.oldest_batch, summary.newest_batch, summary.begun_batch) == (0, 6, 7)
    assert (summary.stores, summary.stores_without_snapshot, summary.oldest_snapshot) == (2, 0, 5)
    assert summary.provider == "DstlStateStoreProvider"
    recovery = summary.recovery
    assert (recovery.changelogs, recovery.changelog_bytes, recovery.longest) == (4, 160, 2)
    assert summary.sizes["commit entry"].objects == 7
    assert summary.sizes["data file"].objects == 2


def test_each_table_and_summary_of_an_open_checkpoint_has_the_batches_committed_since(
    written: WrittenCheckpoint,
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        reads: dict[str, Callable[[], int]] = {
            "summary": lambda: checkpoint.summary().newest_batch or 0,
            "stores": lambda: max(checkpoint.stores().column("version").to_pylist()) - 1,
            "versions": lambda: max(checkpoint.versions().column("version").to_pylist()) - 1,
            "snapshots": lambda: checkpoint.snapshots().num_rows,
        }
        before = {name: read() for name, read in reads.items()}
        assert [before[name] for name in ("summary", "stores", "versions")] == [6, 6, 6]
        for batch, (name, read) in enumerate(reads.items(), 7):
            written.batch(batch, snapshots=True)
            written.offsets(batch + 1)
            assert read() > before[name]


def test_the_row_of_a_damaged_entry_has_the_damage_and_others_are_read(written: WrittenCheckpoint) -> None:
    entry = written.root / "commits/5"
    entry.write_bytes(entry.read_bytes()[:-1])
    with spark_dstl.open(str(written.root)) as checkpoint:
        rows = checkpoint.entries().read_all().to_pylist()
        assert checkpoint.summary().damaged_entries == 1
        with pytest.raises(DamagedLog, match="commits/5 is damaged at offset"):
            checkpoint.segments().read_all()
    assert [row["batch"] for row in rows if row["damage"]] == [5]


def test_an_entry_that_is_deleted_during_the_reading_is_left_out(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spark_dstl.open(str(written.root)) as checkpoint:
        tail = checkpoint.storage.tail
        monkeypatch.setattr(
            checkpoint.storage, "tail", lambda name, length: None if name == "commits/0" else tail(name, length)
        )
        assert checkpoint.entries().read_all().num_rows == 6
        assert min(checkpoint.survey().entries) == 1


def test_data_files_are_in_the_base_path_that_the_newest_entry_names(
    tmp_path: Path, written: WrittenCheckpoint
) -> None:
    base = tmp_path / "base"
    (written.root / "dstl/data").rename(tmp_path / "moved")
    base.mkdir()
    (tmp_path / "moved").rename(base / "data")
    written.entry(7, written.changes(7), base=f"file:{base}")
    with spark_dstl.open(str(written.root)) as checkpoint:
        found = [row["name"] for row in checkpoint.objects().read_all().to_pylist() if row["kind"] == "data file"]
        assert checkpoint.base(checkpoint.survey().base).size(f"data/1-{RUN}/1-1-5eed.log") is not None
        assert checkpoint.summary().sizes["data file"].objects == 2
    assert found == [f"{base}/data/1-{RUN}/1-1-5eed.log", f"{base}/data/1-{RUN}/1-2-5eed.log"]
    with spark_dstl.open(str(written.root), base_path=str(tmp_path / "elsewhere")) as checkpoint:
        assert "data file" not in checkpoint.summary().sizes


def test_a_snapshot_of_a_version_may_be_held_by_a_later_entry(tmp_path: Path) -> None:
    written = WrittenCheckpoint(tmp_path / "q", partitions=1).begin().batches(range(3))
    held = Written(0, 0, 2, zip_of({}), kind=2)
    written.entry(3, [*written.changes(3), held], listed=Listed(held=[Held(0, 0, 2, 3)]))
    with spark_dstl.open(str(written.root)) as checkpoint:
        (row,) = checkpoint.snapshots().to_pylist()
        (store,) = checkpoint.stores().to_pylist()
    assert (row["version"], row["batch"]) == (2, 3)
    assert (store["snapshot"], store["replay_changelogs"]) == (2, 2)


def test_a_directory_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "absent"):
        with pytest.raises(
            CheckpointNotFound, match=r"there is no such directory, or it is empty\. Name the directory"
        ):
            spark_dstl.open(str(place))
    (tmp_path / "offsets").mkdir()
    with pytest.raises(CheckpointNotFound, match=r"it has no file `metadata`\. Name the directory"):
        spark_dstl.open(str(tmp_path))
    for content in ("[]", '{"id":7}', '{"id":"x"}'):
        (tmp_path / "metadata").write_text(content)
        with pytest.raises(CheckpointNotFound, match="names no query"):
            spark_dstl.open(str(tmp_path))


def test_checkpoints_are_found_in_a_directory_of_them(tmp_path: Path, written: WrittenCheckpoint) -> None:
    assert find_checkpoints(str(tmp_path)) == [str(written.root)]
    assert find_checkpoints(str(written.root)) == [str(written.root)]


def test_unreadable_metadata_of_spark_is_left_out(written: WrittenCheckpoint) -> None:
    (written.root / "state/0/_metadata/metadata").write_text("v1\n" + json.dumps({"operatorInfo": 3}))
    (written.root / "offsets/7").write_text("v1\n[")
    (written.root / "dstl/epochs/2").write_bytes(b"\xff" * 10000)
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert checkpoint.operators().num_rows == 0
        assert checkpoint.summary().provider is None
        assert checkpoint.claims().to_pylist()[1]["run"] is None


def test_a_call_after_a_failed_one_starts_no_second_java_process(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch, processes: list[FakeProcess]
) -> None:
    def failing(_checkpoint: object, _gateway: object) -> None:
        raise spark_dstl.JvmFailed("it lacks a class")

    monkeypatch.setattr("spark_dstl.checkpoint.checkpoint.StateReader", failing)
    with spark_dstl.open(str(written.root)) as checkpoint:
        for _ in range(2):
            with pytest.raises(spark_dstl.JvmFailed):
                checkpoint.state()
        assert [one.is_running for one in processes] == [True]
    assert [one.is_running for one in processes] == [False]


def test_checkpoints_with_the_same_options_share_a_java_process(
    written: WrittenCheckpoint, monkeypatch: pytest.MonkeyPatch, processes: list[FakeProcess]
) -> None:
    path = str(written.root)
    with spark_dstl.open(path) as one, spark_dstl.open(path, options=StorageOptions(endpoint="http://other")) as other:
        with spark_dstl.open(path) as same:
            assert same.gateway() is one.gateway()
        assert other.gateway() is not one.gateway()
        monkeypatch.setenv("AWS_PROFILE", "another account")
        with spark_dstl.open(path) as of_another_account:
            assert of_another_account.gateway() is not one.gateway()
        assert [process.is_running for process in processes] == [True, True, False]
    assert not any(process.is_running for process in processes)


@pytest.mark.usefixtures("processes")
def test_a_java_process_that_died_is_not_shared(written: WrittenCheckpoint) -> None:
    with spark_dstl.open(str(written.root)) as one, spark_dstl.open(str(written.root)) as later:
        died = one.gateway()
        died.close()
        assert later.gateway() is not died
        one.close()
        assert later.gateway().is_running


def test_without_py4j_the_error_names_the_extra_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `SPARK_HOME` and without PySpark."""
    for name, variable in {"bin/java": "JAVA_HOME", "jars/spark-core_2.13-4.2.0.jar": "SPARK_HOME"}.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.touch(mode=0o755)
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("SPARK_DSTL_JAR", str(tmp_path / "bin/java"))
    monkeypatch.setitem(sys.modules, "py4j.java_gateway", None)
    with pytest.raises(MissingPackage, match=r'the package py4j, .*: pip install "spark-dstl\[spark\]"'):
        Gateway(JvmOptions())


@pytest.mark.parametrize(
    ("name", "key", "partitions"), [("globalLimit", "[{}]", 1), ("stateStoreSave", "[]", 1), ("dedupe", "[]", 3)]
)
def test_ungrouped_state_has_one_partition(tmp_path: Path, name: str, key: str, partitions: int) -> None:
    written = WrittenCheckpoint(tmp_path / "q", partitions=1).begin().batches(range(2))
    metadata = written.root / "state/0/_metadata/metadata"
    noted = metadata.read_text().replace('"numPartitions": 1', '"numPartitions": 3')
    metadata.write_text(noted.replace("stateStoreSave", name))
    schema = written.root / "state/0/0/_metadata/schema"
    schema.write_bytes(f'\0\2v2\0\0{{"type":"struct","fields":{key}}}\0{{"type":"struct","fields":[]}}'.encode())
    with spark_dstl.open(str(written.root)) as checkpoint:
        assert checkpoint.operators().column("partitions").to_pylist() == [partitions]
        assert checkpoint.verify().is_damaged == (partitions != 1)
