# SPDX-License-Identifier: Apache-2.0
"""What rows with nested values look like on standard output."""

import csv
import io
import json
from datetime import datetime, timezone

import pyarrow as pa
import pytest

from spark_dstl.commands.console.printing import print_rows

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
KEY = {"page": "/ä", "at": AT}
VALUE = {"sums": [1, 2], "blob": b"x"}
AS_JSON = {
    "key": {"page": "/ä", "at": "2026-01-02T03:04:05+00:00"},
    "value": {"sums": [1, 2], "blob": "eA=="},
    "partition": 3,
    "gone": None,
}


def printed(form: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_rows(form, pa.table({"key": [KEY], "value": [VALUE], "partition": [3], "gone": pa.nulls(1)}))
    return capsys.readouterr().out.splitlines()


def test_nested_values_stay_nested_in_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert [json.loads(line) for line in printed("jsonl", capsys)] == [AS_JSON]


@pytest.mark.parametrize(("form", "gone"), [("csv", ""), ("table", "-")])
def test_nested_values_are_json_in_cells(form: str, gone: str, capsys: pytest.CaptureFixture[str]) -> None:
    titles, row = printed(form, capsys)
    key, value = (json.dumps(AS_JSON[column], ensure_ascii=False) for column in ("key", "value"))
    if form == "csv":
        assert next(csv.reader(io.StringIO(row))) == [key, value, "3", gone]
    else:
        assert row == f"{key}  {value}          3  {gone}"
        assert titles.split() == ["key", "value", "partition", "gone"]


def test_numbers_that_json_does_not_have_are_texts(capsys: pytest.CaptureFixture[str]) -> None:
    odd = [float("nan"), float("inf"), float("-inf"), 0.5]
    print_rows("jsonl", pa.table({"value": [{"of": odd}]}))
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "value": {"of": ["NaN", "Infinity", "-Infinity", 0.5]}
    }
