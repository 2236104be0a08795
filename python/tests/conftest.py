# SPDX-License-Identifier: Apache-2.0
"""Shared by the unit tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from s3_imitation import s3_imitation
from written_checkpoint import WrittenCheckpoint

from spark_dstl import dependencies
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.verification import verify


@pytest.fixture(autouse=True)
def looks_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands wait only briefly between two looks at a checkpoint."""
    monkeypatch.setattr(activity, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(verify, "SECOND_LOOK_SECONDS", 0.01)


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed that only some commands need."""

    def missing(module: str) -> object:
        raise ModuleNotFoundError(name=module)

    monkeypatch.setattr(dependencies, "import_module", missing)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The URL of a server that speaks S3's protocol, in this process, on loopback."""
    with s3_imitation() as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    """Put the files below a directory into a separate bucket; returns its URI."""
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = boto3.client("s3", endpoint_url=s3_server, region_name="us-east-1")
    made: list[str] = []

    def put(directory: Path) -> str:
        bucket = f"bucket-{abs(hash(str(directory))) % 10**12}"
        client.create_bucket(Bucket=bucket)
        made.append(bucket)
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                client.put_object(
                    Bucket=bucket, Key=f"checkpoints/q/{path.relative_to(directory)}", Body=path.read_bytes()
                )
        return f"s3a://{bucket}/checkpoints/q"

    return put


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    """Batches 0 to 3 in the log."""
    return WrittenCheckpoint(tmp_path / "q").begin().batches(range(4))
