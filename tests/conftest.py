"""Shared by all end-to-end tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import shared_session
from harness import Reader
from settings import with_absolute_jars

# The drivers of the tests run in directories of their own, where a relative path leads to nothing.
os.environ.update(with_absolute_jars(os.environ))


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """An application that reads the states the tests leave."""
    reader = Reader(tmp_path_factory.mktemp("reader"))
    yield reader
    reader.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """An application for the queries that need no process of their own."""
    session = shared_session.start(tmp_path_factory.mktemp("shared"))
    yield session
    session.stop()
