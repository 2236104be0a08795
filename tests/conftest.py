"""Shared by all end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness import Reader


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """An application that reads the states the tests leave."""
    reader = Reader(tmp_path_factory.mktemp("reader"))
    yield reader
    reader.close()
