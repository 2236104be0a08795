# SPDX-License-Identifier: Apache-2.0
import resource
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from written_checkpoint import WrittenCheckpoint

import spark_dstl
from spark_dstl import dependencies
from spark_dstl.checkpoint import storage as module
from spark_dstl.checkpoint.java.gateway import Gateway, JvmOptions
from spark_dstl.checkpoint.java.state import StateReader
from spark_dstl.checkpoint.locate import Place, StorageOptions, locate, server_of
from spark_dstl.checkpoint.storage import Readers, Storage, at_once
from spark_dstl.errors import DstlError, JvmFailed, MissingPackage, UnreadableStorage


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "commits").mkdir()
    (tmp_path / "dstl/data/1-x").mkdir(parents=True)
    (tmp_path / "commits/0").write_bytes(b"0123456789")
    (tmp_path / "commits/1").write_bytes(b"")
    (tmp_path / "dstl/data/1-x/a.log").write_bytes(b"a")
    return tmp_path


class LikeGcs:
    """Local files as pyarrow's client of GCS shows objects.

    It lists only directories that an object marks, of which there are none, refuses to read from the end, and fails to
    write.
    """

    type_name = "gcs"

    def __init__(self) -> None:
        self._files = fs.LocalFileSystem()

    def get_file_info(self, of: Any) -> Any:
        found = self._files.get_file_info(of)
        return [info for info in found if info.is_file] if isinstance(found, list) else found

    @contextmanager
    def open_input_file(self, path: str) -> Iterator[Any]:
        with self._files.open_input_file(path) as file:
            yield FileLikeGcs(file)

    def delete_file(self, path: str) -> None:
        self._files.delete_file(path)

    def create_dir(self, path: str, recursive: bool) -> None:
        self._files.create_dir(path, recursive=recursive)

    def open_output_stream(self, path: str) -> Any:
        raise OSError(f"UNAVAILABLE: {path}")


class FileLikeGcs:
    def __init__(self, file: Any) -> None:
        self.size = file.size
        self._file = file

    def read_at(self, length: int, offset: int) -> Any:
        if offset >= self.size():
            raise OSError("OUT_OF_RANGE: the requested range cannot be satisfied")
        return self._file.read_at(length, offset)


@pytest.fixture(params=["local", "uri", "s3", "gcs"])
def storage(request: pytest.FixtureRequest, directory: Path, s3: Callable[[Path], str]) -> Storage:
    if request.param == "gcs":
        return Storage(Place(LikeGcs(), str(directory), "gs://bucket/q"))
    place = {"local": str(directory), "uri": f"file:{directory}", "s3": ""}[request.param]
    return Storage(locate(place or s3(directory)))


def test_options_for_s3_have_precedence_over_the_environment() -> None:
    ours = {"AWS_ENDPOINT_URL": "http://localhost:7070", "AWS_DEFAULT_REGION": "eu-central-1"}
    assert server_of(StorageOptions(), {}) == (None, None)
    assert server_of(StorageOptions(), ours) == ("http://localhost:7070", "eu-central-1")
    assert server_of(StorageOptions(), ours | {"AWS_ENDPOINT_URL_S3": "http://s3", "AWS_REGION": "r"}) == (
        "http://s3",
        "r",
    )
    assert server_of(StorageOptions(endpoint="http://other"), {}) == ("http://other", "us-east-1")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("base/of/query", "{here}/base/of/query"),
        ("../base", "{parent}/base"),
        ("/base", "/base"),
        ("file:/base", "file:/base"),
        ("s3://bucket/base", "s3a://bucket/base"),
        ("S3N://bucket/base", "s3a://bucket/base"),
        ("s3a://bucket/base", "s3a://bucket/base"),
        ("hdfs://name:8020/base", "hdfs://name:8020/base"),
    ],
)
def test_the_java_process_gets_a_base_path_as_hadoop_reads_it(
    written: WrittenCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, wanted: str
) -> None:
    monkeypatch.chdir(tmp_path)
    made: list[tuple[str, dict[str, str]]] = []

    class Process:
        def tool(self, _name: str) -> Callable[[str, dict[str, str]], None]:
            return lambda place, settings: made.append((place, settings))

    with spark_dstl.open("q", base_path=given) as checkpoint:
        StateReader(checkpoint, Process())  # type: ignore[arg-type]
    ((place, settings),) = made
    assert place == str(written.root)
    base = settings["spark.sql.streaming.stateStore.dstl.basePath"]
    assert base == wanted.format(here=tmp_path, parent=tmp_path.parent)


def test_objects_are_listed_with_their_sizes(storage: Storage) -> None:
    assert [(stored.name, stored.size) for stored in storage.objects("commits")] == [
        ("commits/0", 10),
        ("commits/1", 0),
    ]
    assert [stored.name for stored in storage.objects("dstl", recursive=True)] == ["dstl/data/1-x/a.log"]
    assert storage.objects("not/there") == []
    assert storage.directories() == ["commits", "dstl"]
    assert storage.directories("dstl") == ["data"]
    assert storage.directories("commits") == storage.directories("not/there") == []


def test_ends_and_ranges_are_read(storage: Storage) -> None:
    tail = storage.tail("commits/0", 4)
    assert tail is not None
    assert (tail.content, tail.length, tail.is_whole) == (b"6789", 10, False)
    longer = storage.tail("commits/0", 11)
    assert longer is not None
    assert (longer.content, longer.is_whole) == (b"0123456789", True)
    assert storage.range("commits/0", 2, 3) == b"234"
    assert storage.range("commits/0", 8, 30) == b"89"
    assert storage.range("commits/0", 30, 3) == b""
    assert storage.read("commits/1", 0) == b""
    assert storage.size("commits/0") == 10


def test_a_missing_object_is_none_and_no_error(storage: Storage) -> None:
    assert storage.tail("commits/7", 4) is None
    assert storage.range("commits/7", 0, 4) is None
    assert storage.size("commits/7") is None
    assert storage.delete("commits/7") in (True, False)


def test_an_object_over_the_limit_is_not_read(storage: Storage) -> None:
    with pytest.raises(UnreadableStorage, match="has 10 bytes, more than the 9"):
        storage.read("commits/0", 9)


@pytest.mark.parametrize("name", ["../x", "commits/../../x", "commits//0", "./x", "a\0b"])
def test_no_name_leads_out_of_the_directory(directory: Path, name: str) -> None:
    storage = Storage(locate(str(directory)))
    for use in (storage.size, storage.delete, storage.objects):
        with pytest.raises(UnreadableStorage, match="is not the name of an object below"):
            use(name)


def test_objects_are_deleted(storage: Storage) -> None:
    assert storage.delete("commits/0")
    assert [stored.name for stored in storage.objects("commits")] == ["commits/1"]


def test_a_given_endpoint_has_precedence_over_the_environment(
    s3_server: str, s3: Callable[[Path], str], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = s3(directory)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    storage = Storage(locate(uri, StorageOptions(endpoint=s3_server)))
    assert storage.size("commits/0") == 10


def test_a_write_that_fails_leaves_no_object_that_was_cut_off(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    # As a full disk: the file is opened, and cannot hold the content.
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))
    try:
        with pytest.raises(UnreadableStorage, match=r"offsets/1 could not be created.* the permission to write there"):
            Storage(locate(str(tmp_path))).create("offsets/1", b"0123456789 and more")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert not (tmp_path / "offsets/1").exists()


def test_an_object_that_is_replaced_is_never_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed leaves what is there then."""
    (tmp_path / "offsets").mkdir()
    target, storage, write = tmp_path / "offsets/1", Storage(locate(str(tmp_path))), module._write
    target.write_bytes(b"old")
    seen = []

    def slowly(files: Any, path: str, content: bytes) -> None:
        for end in (0, 1, len(content)):
            write(files, path, content[:end])
            seen.append(target.read_bytes())

    monkeypatch.setattr(module, "_write", slowly)
    storage.replace("offsets/1", b"new one")
    assert (seen, target.read_bytes(), [*target.parent.iterdir()]) == ([b"old"] * 3, b"new one", [target])
    (tmp_path / "offsets/2").mkdir()
    with pytest.raises(UnreadableStorage, match=r"offsets/2 could not be created.* the permission to write there"):
        storage.replace("offsets/2", b"new one")
    assert sorted(path.name for path in target.parent.iterdir()) == ["1", "2"]


def test_a_replacement_that_fails_on_gcs_leaves_what_was_there(directory: Path) -> None:
    storage = Storage(Place(LikeGcs(), str(directory), "gs://bucket/q"))
    with pytest.raises(UnreadableStorage, match="gs://bucket/q/commits/0 could not be created: UNAVAILABLE"):
        storage.replace("commits/0", b"new")
    assert storage.read("commits/0", 10) == b"0123456789"


def test_a_deletion_that_fails_names_its_permission(directory: Path) -> None:
    (directory / "offsets").mkdir()
    with pytest.raises(UnreadableStorage, match=r"offsets could not be deleted.* the permission to delete there"):
        Storage(locate(str(directory))).delete("offsets")


def test_an_error_names_the_object_and_no_secret(
    s3: Callable[[Path], str], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = s3(directory)
    # No server listens on this port.
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    with pytest.raises(UnreadableStorage, match=f"{uri}/commits could not be listed: .*Check the path") as raised:
        Storage(locate(uri)).objects("commits")
    assert "testing" not in str(raised.value)


@pytest.mark.parametrize("query", ["enable_tls=false", "no-such-setting=1"])
def test_a_key_in_a_uri_is_in_no_message(query: str) -> None:
    uri = f"abfs://account:c2VjcmV0@127.0.0.1:1/container/q?{query}"
    try:
        shown = locate(uri).shown
    except UnreadableStorage as error:
        shown = "".join(traceback.format_exception(error))
    assert "c2VjcmV0" not in shown
    assert f"abfs://account:*****@127.0.0.1:1/container/q?{query}" in shown


def test_keys_before_a_bucket_are_refused_and_not_shown() -> None:
    with pytest.raises(UnreadableStorage, match="set AWS_ACCESS_KEY_ID") as raised:
        locate("s3a://key:c2VjcmV0@bucket/q")
    assert "c2VjcmV0" not in str(raised.value)


def test_a_name_that_no_bucket_has_is_an_error_about_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UnreadableStorage, match="the region of the bucket a:b could not be found out"):
        locate("s3://a:b/q")


@pytest.mark.parametrize("limit", [None, 1])
def test_retries_on_gcs_have_a_time_limit(limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client retries for 15 minutes by default."""
    given = "" if limit is None else f"&retry_limit_seconds={limit}"
    monkeypatch.setattr("spark_dstl.checkpoint.locate._REQUEST_SECONDS", 1.0)
    # No server listens on this port.
    place = locate(f"gs://anonymous@bucket/q?scheme=http&endpoint_override=127.0.0.1:1{given}")
    with pytest.raises(UnreadableStorage, match="commits could not be listed"):
        Storage(place).objects("commits")


@pytest.mark.parametrize("path", ["q#2", "a%20b", "a b/ü", "date=2026-11-01"])
@pytest.mark.parametrize("root", ["gs://anonymous@bucket", "abfss://bucket@account.dfs.core.windows.net"])
def test_a_path_on_gcs_or_azure_is_what_hadoop_reads(root: str, path: str) -> None:
    assert locate(f"{root}/{path}").path == f"bucket/{path}"


def test_gcs_and_azure_are_read_by_hadoop_if_its_jars_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("spark_dstl.checkpoint.locate.hadoop_files", lambda uri, _options: asked.append(uri))
    place = locate("abfss://c@a.dfs.core.windows.net/x y/q", StorageOptions(jvm=JvmOptions(jars=("hadoop-azure.jar",))))
    assert (asked, place.path) == (["abfss://c@a.dfs.core.windows.net/"], "/x y/q")


def test_a_directory_that_was_deleted_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(JvmFailed, match="Java, which does not start in a directory that was deleted: go to"):
        Gateway(JvmOptions())


def test_a_jar_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(JvmFailed, match=r"there is no jar .*no\.jar: --jars, or JvmOptions\.jars, take paths"):
        Gateway(JvmOptions(jars=(f"{tmp_path}/*", f"{tmp_path}/no.jar")))


def test_a_place_is_inside_another_however_it_is_written(directory: Path, s3_server: str) -> None:
    root = locate(str(directory))
    assert locate(f"file://{directory}/dstl").is_inside(root)
    assert root.beneath("dstl").is_inside(root)
    assert not locate(f"{directory}-other").is_inside(root)
    options = StorageOptions(endpoint=s3_server)
    assert locate("s3a://bucket/q/dstl", options).is_inside(locate("s3://bucket/q", options))
    assert not locate("s3://bucket/q", options).is_inside(root)


def test_results_come_in_order_and_few_are_in_memory() -> None:
    readers = Readers(threads=2)
    asked = []

    def question(item: int) -> int:
        asked.append(item)
        return item * item

    answers = readers.each(question, range(100))
    assert next(answers) == (0, 0)
    assert len(asked) < 10
    assert [answer for _, answer in answers] == [item * item for item in range(1, 100)]
    readers.close()


def test_the_error_for_a_missing_package_has_the_command_to_install_it() -> None:
    with pytest.raises(
        MissingPackage,
        match=r'Reading needs the package no-such-thing, which is not installed: pip install "spark-dstl\[inspect\]"',
    ):
        dependencies.needed("no_such_thing.part", "Reading")


@pytest.mark.parametrize(
    ("name", "code", "why"),
    [
        ("needs_others", "import what_it_needs", "No module named 'what_it_needs'"),
        ("needs_newer", "from needs_newer import what_it_lacks", "cannot import name 'what_it_lacks'"),
    ],
)
def test_a_package_that_cannot_be_imported_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str, why: str
) -> None:
    (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DstlError, match=f"{name}, which cannot be imported: {why}"):
        dependencies.needed(name, "Reading")


def test_several_items_are_worked_on_at_once() -> None:
    together = threading.Barrier(3, timeout=60)
    counts: list[int] = []

    def work(item: int) -> int:
        together.wait()
        return item * item

    assert at_once(3, work, range(6), counts.append) == [0, 1, 4, 9, 16, 25]
    assert counts == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("error", [UnreadableStorage("refused"), KeyboardInterrupt()])
def test_an_error_ends_work_that_has_begun_and_leaves_out_the_rest(error: BaseException) -> None:
    has_failed = threading.Event()
    begun, ended = [], []

    def work(item: int) -> None:
        begun.append(item)
        if item > 0:
            # With fast work all of it might be done before the error.
            has_failed.wait(60)
        if item == 1:
            ended.append(item)

    def done(_count: int) -> None:
        has_failed.set()
        raise error

    with pytest.raises(type(error)):
        at_once(2, work, range(1000), done)
    assert ended == [1]
    assert len(begun) < 1000
