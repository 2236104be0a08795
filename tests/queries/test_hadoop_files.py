# SPDX-License-Identifier: Apache-2.0
"""Storage through Hadoop's client in a Java process, here on local disks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import pytest
from py4j.protocol import Py4JError, get_return_value
from pyarrow.fs import FileSelector, FileType, LocalFileSystem
from pyspark.errors.exceptions import captured

from spark_dstl import JvmOptions
from spark_dstl.checkpoint.java import gateway
from spark_dstl.checkpoint.java.hadoop import exclusive_creation, hadoop_files, storage_errors
from spark_dstl.checkpoint.locate import Place, StorageOptions
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.errors import JvmFailed, UnreadableStorage
from spark_dstl.probing.exclusiveness import EXCLUSIVE
from spark_dstl.probing.places import HadoopFiles
from spark_dstl.probing.probe import Plan, Probe

OPTIONS = JvmOptions(memory="128m")


@pytest.fixture(scope="module")
def files() -> Any:
    return hadoop_files("file:///", OPTIONS)


@pytest.fixture
def storage(files: Any, tmp_path: Path) -> Storage:
    return Storage(Place(files, str(tmp_path), f"file://{tmp_path}"))


def test_objects_are_listed_and_read_from_both_ends(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "commits" / "deep").mkdir(parents=True)
    content = bytes(range(256)) * 40_000
    for name in ("commits/0", "commits/deep/with space", "commits/deep/with\ttab", "commits/deep/with\u2028line"):
        (tmp_path / name).write_bytes(content)
    assert [one.name for one in storage.objects("commits")] == ["commits/0"]
    found = storage.objects(recursive=True)
    assert {one.name for one in found} == {
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
    }
    assert {one.size for one in found} == {len(content)}
    assert all(one.modified is not None for one in found)
    assert storage.directories("commits") == ["deep"]
    # The content reaches Python in several pieces.
    assert storage.read("commits/0", 1 << 30) == content
    assert storage.range("commits/0", 300, 20) == content[300:320]
    tail = storage.tail("commits/deep/with\ttab", 10)
    assert tail is not None
    assert tail.content == content[-10:]


def test_a_missing_object_is_no_error_and_a_failed_deletion_names_the_object(storage: Storage, tmp_path: Path) -> None:
    assert storage.objects("commits") == []
    assert storage.read("commits/0", 10) is None
    assert storage.size("commits/0") is None
    assert not storage.delete("commits/0")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "one").write_bytes(b"1")
    with pytest.raises(UnreadableStorage, match=r"full could not be deleted: .*not empty"):
        storage.delete("full")
    assert storage.delete("full/one")
    assert storage.delete("full")


def test_an_object_is_replaced(storage: Storage, tmp_path: Path) -> None:
    for content in (b"old", b"new one"):
        storage.replace("offsets/1", content)
        assert {one.name: one.read_bytes() for one in (tmp_path / "offsets").iterdir()} == {"1": content}


def test_a_missing_object_is_no_error_beside_a_session_which_does_not_know_the_exception(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark has its session's JVM convert the exceptions of all JVMs."""

    def unknown(_exception: object) -> Exception:
        raise Py4JError("no such object")

    monkeypatch.setattr(captured, "convert_exception", unknown)
    monkeypatch.setattr("py4j.java_gateway.get_return_value", captured.capture_sql_exception(get_return_value))
    assert storage.read("missing", 1) is None


def test_objects_are_written_whole_and_a_probe_deletes_its_objects(files: Any, tmp_path: Path) -> None:
    content = bytes(range(256)) * 40_000
    with files.open_output_stream(str(tmp_path / "written")) as stream:
        stream.write(content)
    assert (tmp_path / "written").read_bytes() == content
    (info,) = files.get_file_info(FileSelector(str(tmp_path)))
    assert (info.type, info.size) == (FileType.File, len(content))
    (tmp_path / "written").unlink()
    create = exclusive_creation(files)
    assert create is not None
    there = HadoopFiles(Place(files, str(tmp_path), f"file://{tmp_path}"), create)
    probe = Probe(there, Plan(objects=3, object_bytes=10))
    assert probe.run().exclusive.verdict == EXCLUSIVE
    assert probe.left_behind == []
    assert list(tmp_path.iterdir()) == []


def test_exclusive_creation_does_not_replace_an_object(files: Any, tmp_path: Path) -> None:
    create = exclusive_creation(files)
    assert create is not None
    assert create(str(tmp_path / "one"), b"first")
    assert not create(str(tmp_path / "one"), b"second")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"first"]
    assert exclusive_creation(LocalFileSystem()) is None


def test_file_systems_with_the_same_options_share_a_java_process(files: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    started: list[JvmOptions] = []

    def start(options: JvmOptions) -> NoReturn:
        started.append(options)
        raise JvmFailed("it was not to be started")

    monkeypatch.setattr(gateway, "Gateway", start)
    hadoop_files("file:///tmp/", JvmOptions(memory="128m"))
    assert started == []
    with pytest.raises(JvmFailed):
        hadoop_files("file:///tmp/", StorageOptions().jvm)
    assert started == [StorageOptions().jvm]


def test_settings_of_hadoop_are_those_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "core-site.xml").write_text(
        f"""<configuration>
          <property><name>fs.viewfs.mounttable.site.link./data</name><value>{tmp_path.as_uri()}</value></property>
        </configuration>"""
    )
    (tmp_path / "0").write_bytes(b"here")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "settings"))
    mounted = hadoop_files("viewfs://site/", OPTIONS)
    assert Storage(Place(mounted, "/data", "viewfs://site/data")).read("0", 10) == b"here"


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        ("Client cannot authenticate via:[TOKEN, KERBEROS]", "log in with kinit"),
        ("SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]", "HADOOP_CONF_DIR"),
        ("java.net.UnknownHostException: nameservice1", "HADOOP_CONF_DIR"),
    ],
)
def test_an_error_of_a_secured_cluster_says_what_to_do(words: str, way_out: str) -> None:
    java = gateway.acquire(OPTIONS)._gateway.jvm
    with pytest.raises(OSError, match=f"{re.escape(words)}.*{way_out}"), storage_errors():
        java.java.util.concurrent.CompletableFuture.failedFuture(java.java.io.IOException(words)).getNow(None)
