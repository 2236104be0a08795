# SPDX-License-Identifier: Apache-2.0
"""Selections that the Java process cannot take, without that process."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_dstl.checkpoint.java.state import Selection, StateReader
from spark_dstl.errors import UnreadableState


@pytest.fixture
def reader(tmp_path: Path) -> StateReader:
    made = StateReader.__new__(StateReader)
    made._checkpoint = SimpleNamespace(path=str(tmp_path))  # type: ignore[assignment]
    made._gateway = SimpleNamespace(tool=lambda _name: lambda *arguments: arguments)  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("number", [0, 5, 2**31 - 1])
def test_a_number_of_java_is_passed_on(reader: StateReader, number: int) -> None:
    assert reader.selection(Selection(operator=number, partition=number)) == (number, None, None, number, None)
    assert reader.selection(None) == (None,) * 5


@pytest.mark.parametrize("field", ["operator", "partition"])
@pytest.mark.parametrize("number", [-1, 2**31, 2**70])
def test_another_number_is_refused_with_its_name_and_the_checkpoint(
    reader: StateReader, tmp_path: Path, field: str, number: int
) -> None:
    wanted: dict[str, Any] = {field: number}
    with pytest.raises(
        UnreadableState,
        match=f"{field} {number} is not in .*: numbers of .* begin with 0, and `dstl ls PATH operators`",
    ) as error:
        reader.selection(Selection(**wanted))
    assert str(error.value).startswith(f"{tmp_path}: ")


@pytest.mark.parametrize("field", ["store", "column_family", "where"])
def test_text_that_is_not_unicode_is_refused(reader: StateReader, tmp_path: Path, field: str) -> None:
    wanted: dict[str, Any] = {field: "a\ud800"}
    with pytest.raises(UnreadableState, match=f"{field} 'a.ud800' is not valid text") as error:
        reader.selection(Selection(**wanted))
    assert str(error.value).startswith(f"{tmp_path}: ")
    str(error.value).encode()
