# SPDX-License-Identifier: Apache-2.0
"""Shared by all end-to-end tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import shared_session
from harness import Reader
from settings import JVM_OPTIONS, with_absolute_jars
from spark_dstl.checkpoint import access
from spark_dstl.checkpoint.changing import activity
from spark_dstl.checkpoint.verification import verify

# Drivers run in other working directories.
os.environ.update(with_absolute_jars(os.environ))
# Every JVM of the tests takes them, also those that the package starts, and those of parallel test processes.
if "JDK_JAVA_OPTIONS" not in os.environ:
    # Killed processes leave libraries and Spark's directories, which are deleted when the tests have ended.
    java_files = tempfile.TemporaryDirectory(prefix="spark-dstl-tests-", ignore_cleanup_errors=True)
    os.environ["JDK_JAVA_OPTIONS"] = f"{JVM_OPTIONS} -Djava.io.tmpdir={java_files.name}"


@pytest.fixture
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands wait only briefly between two looks at a checkpoint."""
    monkeypatch.setattr(activity, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(verify, "SECOND_LOOK_SECONDS", 0.01)


@pytest.fixture(scope="session", autouse=True)
def java_processes_stay() -> Iterator[None]:
    """Java processes that read state serve later tests as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access, "release", lambda _: None)
        yield


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """An application that reads the states of finished runs."""
    reader = Reader(tmp_path_factory.mktemp("reader"))
    yield reader
    reader.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The shared session, for queries that need no separate driver."""
    session = shared_session.start(tmp_path_factory.mktemp("shared"))
    yield session
    session.stop()
