# SPDX-License-Identifier: Apache-2.0
"""The storages that a probe can measure behave alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow.fs import LocalFileSystem

from spark_dstl.checkpoint.locate import Place, StorageOptions
from spark_dstl.probing.places import ArrowFiles, storage_at
from spark_dstl.probing.s3 import S3Objects
from spark_dstl.probing.storage import ProbedStorage, Refused


@pytest.mark.parametrize("kind", ["local", "s3", "arrow"])
def test_storages_agree(tmp_path: Path, s3: Callable[[Path], str], kind: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/object").write_bytes(b"x")
    there: ProbedStorage
    if kind == "arrow":
        there = ArrowFiles(Place(LocalFileSystem(), str(tmp_path), str(tmp_path)))
    else:
        there = storage_at(str(tmp_path) if kind == "local" else s3(tmp_path), StorageOptions(), 10)
    assert there.folders() == ["sub"]
    there.make_folder("made")
    there.put("made/a", b"first")
    there.put("made/a", b"second")
    assert (there.get("made/a"), there.get("made/b")) == (b"second", None)
    assert (there.exists("made/a"), there.exists("made/b")) == (True, False)
    if there.not_exclusive_because is None:
        assert there.create("made/b", b"b")
        assert not there.create("made/b", b"other")
        assert there.get("made/b") == b"b"
        there.delete("made/b")
    else:
        with pytest.raises(Refused, match="no exclusive create"):
            there.create("made/b", b"b")
    assert (there.objects("made"), there.objects("none")) == (["made/a"], [])
    there.delete("made/a")
    there.delete("made/a")
    there.delete_folder("made")
    assert there.folders() == ["sub"]


def test_a_folder_on_gcs_is_made_where_no_object_marks_the_directories_above() -> None:
    """pyarrow's client refuses to make one there otherwise."""
    made = []
    files = SimpleNamespace(type_name="gcs", create_dir=lambda path, recursive: made.append((path, recursive)))
    ArrowFiles(Place(files, "bucket/q", "gs://bucket/q")).make_folder("made")
    assert made == [("bucket/q/made", True)]


def test_a_server_of_the_environment_is_asked_as_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:7070")
    client = S3Objects("s3://bucket/q", "bucket/q", StorageOptions(), timeout_seconds=1)._client
    # With the bucket in the host's name nothing would be there: 127.0.0.1 has no subdomains.
    assert client.meta.config.s3["addressing_style"] == "path"
    assert (client.meta.endpoint_url, client.meta.region_name) == ("http://127.0.0.1:7070", "us-east-1")
